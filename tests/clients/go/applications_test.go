// Software for Go that is built on Redis, unmodified.

package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

const finished = 30 * time.Second

// asynq keeps tasks in hashes, lists and sorted sets, which its scripts change together. It uses a database of its own,
// since the others are emptied meanwhile.
func TestAsynqRunsTasks(t *testing.T) {
	connection := asynq.RedisClientOpt{Addr: os.Getenv("TOKAIDO_ADDRESS"), DB: 7}
	done := make(chan string, 10)
	var failures atomic.Int32
	failures.Store(2)
	handler := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		if task.Type() == "flaky" && failures.Add(-1) >= 0 {
			return errors.New("once more")
		}
		done <- task.Type() + " " + string(task.Payload())
		return nil
	})
	server := asynq.NewServer(connection, asynq.Config{
		LogLevel:                 asynq.ErrorLevel,
		DelayedTaskCheckInterval: 50 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 10 * time.Millisecond },
		GroupGracePeriod:         time.Second,
		GroupAggregator: asynq.GroupAggregatorFunc(func(group string, tasks []*asynq.Task) *asynq.Task {
			return asynq.NewTask("group", fmt.Appendf(nil, "%s of %d", group, len(tasks)))
		}),
	})
	if err := server.Start(handler); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	client := asynq.NewClient(connection)
	defer client.Close()

	enqueue := func(name string, options ...asynq.Option) {
		t.Helper()
		if _, err := client.Enqueue(asynq.NewTask(name, []byte("data")), options...); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(wanted string) {
		t.Helper()
		select {
		case found := <-done:
			if found != wanted {
				t.Fatalf("%q was done, not %q", found, wanted)
			}
		case <-time.After(finished):
			t.Fatalf("%q was not done", wanted)
		}
	}

	enqueue("plain")
	expect("plain data")
	enqueue("later", asynq.ProcessIn(100*time.Millisecond))
	expect("later data")
	enqueue("flaky", asynq.MaxRetry(3))
	expect("flaky data")
	enqueue("unique", asynq.Unique(time.Minute), asynq.ProcessIn(time.Second))
	_, err := client.Enqueue(asynq.NewTask("unique", []byte("data")), asynq.Unique(time.Minute))
	if !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Fatalf("a duplicate: %v", err)
	}
	expect("unique data")
	for range 3 {
		enqueue("part", asynq.Group("parts"))
	}
	expect("group parts of 3")

	inspector := asynq.NewInspector(connection)
	defer inspector.Close()
	queue, err := inspector.GetQueueInfo("default")
	if err != nil || queue.Processed < 5 || queue.Size != 0 {
		t.Fatalf("%+v, %v", queue, err)
	}
}
