// Finished transactions of one log, in order, with nothing but Kafka's client, Avro and Jackson.
//
// java -cp … Reader.java BOOTSTRAP TOPIC FRAGMENT.AVSC: a JSON line an event, until the log's end.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.zip.CRC32;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Reader {
    static final int SINGLE_OBJECT = 10; // C3 01 and the schema's fingerprint: Avro's single-object encoding
    static final int REGISTERED = 5; // 00 and the schema's number in the registry: Confluent's wire format
    static final int CHECKSUM = 4;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        Schema schema = new Schema.Parser().parse(new File(args[2]));
        var decoder = new GenericDatumReader<GenericRecord>(schema);
        var change = new GenericDatumReader<GenericRecord>(schema.getField("changes").schema().getElementType());
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        var json = new ObjectMapper();
        var settings = Map.<String, Object>of(
            "bootstrap.servers", args[0], "isolation.level", "read_committed",
            "enable.auto.commit", false, "auto.offset.reset", "none");
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
            var partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            var ends = consumer.endOffsets(partitions);
            var unfinished = new HashMap<Integer, List<GenericRecord>>();
            var previous = new HashMap<Integer, Long>(); // each partition's last finished event
            var finished = new TreeMap<Long, List<GenericRecord>>(); // those that wait for one before them
            long next = 0;
            while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                for (var message : consumer.poll(Duration.ofSeconds(1))) {
                    GenericRecord fragment = decode(decoder, message.value());
                    int partition = message.partition();
                    if ((int) fragment.get("fragno") == 0) // begins, or begins again: what was unfinished is given up
                        unfinished.put(partition, new ArrayList<>());
                    var event = unfinished.get(partition);
                    String at = message.topic() + "-" + partition + "@" + message.offset();
                    if (event == null || (int) fragment.get("fragno") != event.size())
                        throw broken("fragment_missing", at);
                    if ((long) fragment.get("prev_seqno") != previous.getOrDefault(partition, -1L))
                        throw broken("event_missing", at);
                    if (fragment.get("kind").toString().equals("epoch"))
                        continue;
                    event.add(fragment);
                    if ((boolean) fragment.get("last_frag")) {
                        previous.put(partition, (long) fragment.get("seqno"));
                        finished.put((long) fragment.get("seqno"), event);
                    }
                }
                for (; !finished.isEmpty() && finished.firstKey() == next; next++)
                    out.println(json.writeValueAsString(told(finished.pollFirstEntry().getValue(), change)));
            }
        }
    }

    /** The error of a broken rule, by the names of docs/internals/log.md. */
    static IllegalStateException broken(String rule, String at) {
        return new IllegalStateException("rule=" + rule + (at.isEmpty() ? "" : " at=" + at));
    }

    static GenericRecord decode(GenericDatumReader<GenericRecord> decoder, byte[] value) throws Exception {
        int opening = value[0] == 0 ? REGISTERED : SINGLE_OBJECT;
        var crc = new CRC32();
        crc.update(value, opening, value.length - opening - CHECKSUM);
        if ((int) crc.getValue() != ByteBuffer.wrap(value, value.length - CHECKSUM, CHECKSUM).getInt())
            throw broken("wrong_checksum", "");
        return decoder.read(null, DecoderFactory.get().binaryDecoder(value, opening, value.length - opening, null));
    }

    static Map<String, Object> told(List<GenericRecord> event, GenericDatumReader<GenericRecord> decoder) throws Exception {
        var changes = new ArrayList<Object>();
        var parts = new ByteArrayOutputStream(); // of a change that was too large for a message
        for (var fragment : event)
            for (var each : (List<?>) fragment.get("changes")) {
                var change = (GenericRecord) each;
                if (change.getSchema().getName().equals("Chunk")) {
                    if ((long) change.get("start") != parts.size())
                        throw broken("row_parts", "");
                    parts.write(((ByteBuffer) change.get("data")).array());
                    if (parts.size() < (long) change.get("size"))
                        continue;
                    change = decoder.read(null, DecoderFactory.get().binaryDecoder(parts.toByteArray(), null));
                    parts.reset();
                }
                changes.add(plain(change));
            }
        var told = new LinkedHashMap<String, Object>();
        told.put("seqno", event.get(0).get("seqno"));
        told.put("epoch", event.get(0).get("epoch"));
        told.put("changes", changes);
        return told;
    }

    static Object plain(Object value) {
        if (value instanceof GenericRecord record) {
            var fields = new LinkedHashMap<String, Object>();
            for (var field : record.getSchema().getFields())
                fields.put(field.name(), plain(record.get(field.pos())));
            return fields;
        }
        if (value instanceof Collection<?> many)
            return many.stream().map(Reader::plain).collect(java.util.stream.Collectors.toList());
        if (value instanceof Map<?, ?> map) {
            var entries = new LinkedHashMap<String, Object>();
            map.forEach((key, one) -> entries.put(key.toString(), plain(one)));
            return entries;
        }
        if (value instanceof ByteBuffer raw)
            return HexFormat.of().formatHex(raw.array(), raw.position(), raw.limit());
        return value instanceof CharSequence || value instanceof GenericEnumSymbol ? value.toString() : value;
    }
}
