#!/bin/sh
# Creates the least rights on a log with Kafka's own tool, for administrators who do not have `thl acls --create`.
#
#   kafka-acls.sh LOG PRODUCER CONSUMER OPERATOR OPTION…
#
# LOG is kafka.topic_prefix.service (thl.shop), the principals are like User:thl-producer, the OPTIONs those of Kafka's tool:
#
#   docker/grants/kafka-acls.sh thl.shop User:thl-producer User:thl-applier User:ops \
#       --bootstrap-server kafka.example:9092 --command-config admin.properties
#
# KAFKA_ACLS names Kafka's tool (default: kafka-acls.sh of the PATH).
set -eu
[ "$#" -ge 5 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
log=$1 producer=$2 consumer=$3 operator=$4
shift 4
allow() { # PRINCIPAL RESOURCE AND OPERATIONS…
    who=$1
    shift
    "${KAFKA_ACLS:-kafka-acls.sh}" "$@" --add --allow-principal "$who"
}

# Only the producer writes events, positions and prepared transactions, and may use the transactional id: its use fences.
allow "$producer" "$@" --topic "$log" --topic "$log.control" --topic "$log.position" --topic "$log.prepared" \
    --operation Read --operation Describe --operation DescribeConfigs --operation Create --operation Write
allow "$producer" "$@" --transactional-id "$log" --operation Write --operation Describe

# The applier, thl list, thl status and thl serve, and programs that read the log. Groups are for those that commit offsets.
for reader in "$consumer" "$operator"; do
    allow "$reader" "$@" --topic "$log" --topic "$log.control" --topic "$log.position" \
        --operation Read --operation Describe --operation DescribeConfigs
    allow "$reader" "$@" --group "$log." --resource-pattern-type prefixed --operation Read
done

# thl offline --producer, thl load, thl verify --repair.
allow "$operator" "$@" --topic "$log.control" --operation Write
