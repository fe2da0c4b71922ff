"""The grammar of MySQL's DDL, to a statement's last token: what it says of columns and keys.

Pure, as `thl` is. `capture` follows the source's tables with it, `write` a target's: each decides for itself what a
change of a column means for rows. `subjects` and `captured` say which part of a definition is about captured tables;
`without` and `renaming` are for definitions of tables that have rules.
"""
