"""Values of rows and text results as Avro: numbers, times, text in all character sets, JSON.

- `columns`: a column's type, and which codec decodes its values.
- `rows`: row images to Avro rows; compiled.
- `values`: numbers, times and labels of row images; compiled.
- `text`: text of row images, in any character set; compiled.
- `charsets`: text of any character set for Python; tables of characters for `text`.
- `charset_data`: the characters of single-byte sets.
- `multibyte/`: the characters of multi-byte sets.
- `collations`: collations by their ids.
- `session_names`: the modes of `sql_mode` and collations by name.
- `jsontext`: binary JSON as text; compiled.
- `json_diff`: partial updates of JSON documents.
- `json_parts`: the parts of a JSON document's text; compiled.
- `row_transform`: rows without dropped columns, with masked values; compiled.
- `text_rows`: rows of a SELECT (the initial load) to Avro rows; compiled.
"""
