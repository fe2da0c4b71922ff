"""The commands of `thl`, one file each; `connector.cli` imports a command only when it is called.

`command` is their class (help, examples, earlier forms of options), `options` and `bounds` the options that they share,
`reference` the page docs/commands.md.
"""
