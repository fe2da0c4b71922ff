"""The grammar that all commands of `thl` share: options, bounds, earlier forms, the reference.

- `command`: the class of a command: help, examples, earlier forms of options.
- `options`: the configuration, the output's format, the reason, target or producer.
- `bounds`: the types of `--from-X` and `--to-X`.
- `ending`: ends a command that runs until it is stopped, or asked to go offline.
- `unverified`: warns of passwords that are sent to servers without verifying them.
- `reference`: the page docs/commands.md.
"""
