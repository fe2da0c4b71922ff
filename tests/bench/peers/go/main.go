// A relay from MySQL's binary log to Kafka made of go-mysql's canal and franz-go: what one would write by hand.
//
// One JSON message a row change, in the log's order, to one partition: {"table":…,"type":…,"old":{…},"new":{…}}, keyed
// by the primary key. Batches are lz4, the producer is idempotent, acks=all. It keeps no position and no transaction:
// started again it would send everything again. It runs until it is told to end.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/schema"
	"github.com/twmb/franz-go/pkg/kgo"
)

type relay struct {
	canal.DummyEventHandler
	client *kgo.Client
	topic  string
}

func main() {
	address := flag.String("mysql", "", "host:port of the server")
	user := flag.String("user", "root", "who logs in, with the password in MYSQL_PWD")
	file := flag.String("file", "", "the binary log to begin with")
	tables := flag.String("tables", ".*", "a regular expression of schema.table")
	brokers := flag.String("kafka", "", "host:port of a broker")
	topic := flag.String("topic", "", "an existing topic with one partition")
	linger := flag.Duration("linger", 10*time.Millisecond, "how long a batch waits to be filled")
	flag.Parse()
	if err := run(*address, *user, *file, *tables, *brokers, *topic, *linger); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, user, file, tables, brokers, topic string, linger time.Duration) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.ProducerLinger(linger),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return err
	}
	defer client.Close()

	config := canal.NewDefaultConfig()
	config.Addr, config.User, config.Password = address, user, os.Getenv("MYSQL_PWD")
	config.Dump.ExecutionPath = "" // no initial dump
	config.IncludeTableRegex = []string{tables}
	config.UseDecimal = true // otherwise a decimal becomes a float
	reader, err := canal.NewCanal(config)
	if err != nil {
		return err
	}
	reader.SetEventHandler(&relay{client: client, topic: topic})

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	ended := make(chan error, 1)
	go func() { ended <- reader.RunFrom(mysql.Position{Name: file, Pos: 4}) }()
	select {
	case err = <-ended:
		return err
	case <-stop:
		reader.Close()
		return client.Flush(context.Background())
	}
}

// OnRow sends the rows of one event.
func (r *relay) OnRow(event *canal.RowsEvent) error {
	step := 1
	if event.Action == canal.UpdateAction {
		step = 2 // before and after take turns
	}
	for at := 0; at < len(event.Rows); at += step {
		var before, after []any
		switch event.Action {
		case canal.InsertAction:
			after = event.Rows[at]
		case canal.DeleteAction:
			before = event.Rows[at]
		default:
			before, after = event.Rows[at], event.Rows[at+1]
		}
		value, err := message(event.Table, event.Action, before, after)
		if err != nil {
			return err
		}
		record := &kgo.Record{Topic: r.topic, Key: key(event.Table, event.Rows[at]), Value: value}
		r.client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				fmt.Fprintln(os.Stderr, "not acknowledged:", err)
				os.Exit(1)
			}
		})
	}
	return nil
}

func key(table *schema.Table, row []any) []byte {
	values, err := table.GetPKValues(row)
	if err != nil {
		return nil
	}
	return fmt.Append(nil, values...)
}

func message(table *schema.Table, action string, before, after []any) ([]byte, error) {
	out := make([]byte, 0, 1024)
	out = append(out, `{"table":"`...)
	out = append(out, table.Schema...)
	out = append(out, '.')
	out = append(out, table.Name...)
	out = append(out, `","type":"`...)
	out = append(out, action...)
	out = append(out, '"')
	var err error
	if out, err = image(out, `,"old":{`, table, before); err != nil {
		return nil, err
	}
	if out, err = image(out, `,"new":{`, table, after); err != nil {
		return nil, err
	}
	return append(out, '}'), nil
}

func image(out []byte, label string, table *schema.Table, row []any) ([]byte, error) {
	if row == nil {
		return out, nil
	}
	out = append(out, label...)
	for at, value := range row {
		if at > 0 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, table.Columns[at].Name...)
		out = append(out, `":`...)
		var err error
		if out, err = field(out, value, &table.Columns[at]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// field writes one value; what is in the binary log's own types needs no reflection.
func field(out []byte, value any, column *schema.TableColumn) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case int32:
		return strconv.AppendInt(out, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case uint64:
		return strconv.AppendUint(out, v, 10), nil
	case float64:
		return strconv.AppendFloat(out, v, 'g', -1, 64), nil
	case string:
		if strings.Contains(column.RawType, "binary") {
			out = append(out, '"')
			out = base64.StdEncoding.AppendEncode(out, []byte(v))
			return append(out, '"'), nil
		}
		return text(out, v)
	default:
		more, err := json.Marshal(v)
		return append(out, more...), err
	}
}

// text writes a string: as it is when nothing in it needs an escape.
func text(out []byte, value string) ([]byte, error) {
	for at := range len(value) {
		if c := value[at]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			more, err := json.Marshal(value)
			return append(out, more...), err
		}
	}
	out = append(out, '"')
	out = append(out, value...)
	return append(out, '"'), nil
}
