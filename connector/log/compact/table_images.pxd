from connector.log.compact.metadata_values cimport MetadataValuesOf
from connector.log.compact.table_changes cimport TableChanges

cdef object drained(TableChanges table, MetadataValuesOf metadata_values)
