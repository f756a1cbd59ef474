// Package client tests a running server with go-redis. TOKAIDO_ADDRESS says where it is
// (`cargo xtask test go`).
package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// connect gives a client of an empty database, without retries, so that a test sees every failure
// itself.
func connect(t *testing.T, protocol int) *redis.Client {
	t.Helper()
	address := os.Getenv("TOKAIDO_ADDRESS")
	if address == "" {
		t.Fatal("TOKAIDO_ADDRESS is not set; run `cargo xtask test go`")
	}
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	if err := client.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return client
}

// everyProtocol runs a test with both versions of the protocol.
func everyProtocol(t *testing.T, test func(*testing.T, *redis.Client)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("resp%d", protocol), func(t *testing.T) { test(t, connect(t, protocol)) })
	}
}

func mustBe[T comparable](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
	}
}

func TestGetsWhatItSet(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		value := "日本橋\x00\xff\r\n"
		ok, err := client.Set(ctx, "k", value, 0).Result()
		mustBe(t, "SET", ok, err, "OK")
		got, err := client.Get(ctx, "k").Result()
		mustBe(t, "GET", got, err, value)
		if _, err := client.Get(ctx, "nothing").Result(); !errors.Is(err, redis.Nil) {
			t.Errorf("an absent key gives %v", err)
		}
	})
}

func TestSetsWithOptions(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		set, err := client.SetNX(ctx, "k", "1", time.Minute).Result()
		mustBe(t, "SET NX", set, err, true)
		set, err = client.SetNX(ctx, "k", "2", time.Minute).Result()
		mustBe(t, "SET NX again", set, err, false)
		old, err := client.SetArgs(ctx, "k", "3", redis.SetArgs{Get: true, KeepTTL: true}).Result()
		mustBe(t, "SET GET", old, err, "1")
		left, err := client.TTL(ctx, "k").Result()
		if err != nil || left <= 0 || left > time.Minute {
			t.Errorf("TTL: %v, %v", left, err)
		}
	})
}

func TestPipelineKeepsOrderAndErrors(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		var counts []*redis.IntCmd
		pipe := client.Pipeline()
		for range 500 {
			counts = append(counts, pipe.Incr(ctx, "n"))
		}
		pipe.Set(ctx, "w", "word", 0)
		bad := pipe.Incr(ctx, "w")
		last := pipe.Get(ctx, "w")
		if _, err := pipe.Exec(ctx); err == nil {
			t.Error("the failed command is not reported")
		}
		for i, count := range counts {
			mustBe(t, "INCR", count.Val(), count.Err(), int64(i+1))
		}
		if bad.Err() == nil {
			t.Error("INCR of a word succeeded")
		}
		mustBe(t, "GET after the error", last.Val(), last.Err(), "word")
	})
}

func TestScansEverythingOnce(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		for i := range 200 {
			client.Set(ctx, fmt.Sprintf("k%03d", i), "x", 0)
		}
		seen := map[string]int{}
		scan := client.Scan(ctx, 0, "k*", 13).Iterator()
		for scan.Next(ctx) {
			seen[scan.Val()]++
		}
		if scan.Err() != nil || len(seen) != 200 {
			t.Errorf("%d keys, %v", len(seen), scan.Err())
		}
		for key, times := range seen {
			mustBe(t, key, times, nil, 1)
		}
	})
}

func TestCountsFromManyConnectionsAtOnce(t *testing.T) {
	client := connect(t, 3)
	const workers, each = 20, 50
	failures := make(chan error, workers)
	for range workers {
		go func() {
			for range each {
				if err := client.Incr(context.Background(), "n").Err(); err != nil {
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	for range workers {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	total, err := client.Get(t.Context(), "n").Int()
	mustBe(t, "the sum", total, err, workers*each)
}

func TestHearsWhatOthersPublish(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		listener := client.Subscribe(ctx, "news")
		defer listener.Close()
		if _, err := listener.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		receivers, err := client.Publish(ctx, "news", "日本橋").Result()
		mustBe(t, "PUBLISH", receivers, err, 1)
		message, err := listener.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, "the message", message.Payload, nil, "日本橋")
	})
}

func TestWaitsForAnElement(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		came := make(chan []string)
		go func() {
			popped, _ := client.BLPop(ctx, 30*time.Second, "queue").Result()
			came <- popped
		}()
		if err := client.RPush(ctx, "queue", "a").Err(); err != nil {
			t.Fatal(err)
		}
		if popped := <-came; len(popped) != 2 || popped[1] != "a" {
			t.Errorf("BLPOP gives %v", popped)
		}
		if err := client.BLPop(ctx, time.Second, "queue").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("an empty queue gives %v", err)
		}
	})
}

func TestReadsAStreamInAGroup(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		client.Del(ctx, "stream")
		if err := client.XGroupCreateMkStream(ctx, "stream", "group", "$").Err(); err != nil {
			t.Fatal(err)
		}
		id, err := client.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []string{"station", "日本橋"}}).Result()
		if err != nil {
			t.Fatal(err)
		}
		read := &redis.XReadGroupArgs{Group: "group", Consumer: "c", Streams: []string{"stream", ">"}, Block: time.Millisecond}
		streams, err := client.XReadGroup(ctx, read).Result()
		if err != nil || len(streams) != 1 || len(streams[0].Messages) != 1 {
			t.Fatalf("XREADGROUP gives %v, %v", streams, err)
		}
		mustBe(t, "the id", streams[0].Messages[0].ID, nil, id)
		mustBe(t, "the value", streams[0].Messages[0].Values["station"], nil, any("日本橋"))
		acknowledged, err := client.XAck(ctx, "stream", "group", id).Result()
		mustBe(t, "XACK", acknowledged, err, 1)
		if err := client.XReadGroup(ctx, read).Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("what is read gives %v", err)
		}
	})
}

func TestCallsProcedures(t *testing.T) {
	everyProtocol(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		page := fmt.Sprintf("/go/%d", time.Now().UnixNano())
		count, err := client.FCall(ctx, "hits.count", []string{page}).Int()
		mustBe(t, "FCALL", count, err, 1)
		count, err = client.Do(ctx, "hits.count", page).Int()
		mustBe(t, "by name", count, err, 2)
		_, err = client.FCall(ctx, "hits.count_and_fail", []string{page}).Result()
		if err == nil || !strings.Contains(err.Error(), "refused on purpose") {
			t.Errorf("the error is lost: %v", err)
		}
		text, err := client.FCallRo(ctx, "hits.get", []string{page}).Text()
		mustBe(t, "FCALL_RO", text, err, "2")
	})
}

// as gives a client that authenticates as a user.
func as(t *testing.T, protocol int, user, password string) *redis.Client {
	t.Helper()
	options := redis.Options{Addr: os.Getenv("TOKAIDO_ADDRESS"), Protocol: protocol, MaxRetries: -1, Username: user, Password: password}
	client := redis.NewClient(&options)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestAUserMayDoWhatItsRulesSay(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("resp%d", protocol), func(t *testing.T) {
			operator, ctx := connect(t, protocol), t.Context()
			user := fmt.Sprintf("go%d", protocol)
			err := operator.Do(ctx, "ACL", "SETUSER", user, "on", ">sesame", "~mine:*", "+@all", "-@dangerous").Err()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { operator.Do(context.Background(), "ACL", "DELUSER", user) })
			client := as(t, protocol, user, "sesame")
			ok, err := client.Set(ctx, "mine:1", "v", 0).Result()
			mustBe(t, "SET", ok, err, "OK")
			name, err := client.Do(ctx, "ACL", "WHOAMI").Text()
			mustBe(t, "ACL WHOAMI", name, err, user)
			for _, err := range []error{client.Get(ctx, "theirs").Err(), client.FlushAll(ctx).Err()} {
				if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
					t.Errorf("it is not refused: %v", err)
				}
			}
			if err := as(t, protocol, user, "wrong").Ping(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") {
				t.Errorf("a wrong password gives %v", err)
			}
		})
	}
}
