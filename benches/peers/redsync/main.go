// Works with redsync as the harness requests: see ../../locks/driver/program.rs.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	lockredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// Job is a job of the harness.
type Job struct {
	Work        string `json:"work"`
	Ports       []int  `json:"ports"`
	Callers     int    `json:"callers"`
	Millis      int    `json:"millis"`
	HoldMicros  int    `json:"hold_micros"`
	PauseMicros int    `json:"pause_micros"`
	Locks       int    `json:"locks"`
	Names       string `json:"names"`
	LeaseMillis int    `json:"lease_millis"`
}

// More tries than any job needs: with the default of 32 a waiter gives up.
const tries = 1_000_000

type worker struct {
	job     Job
	redsync *redsync.Redsync
	input   *bufio.Reader
}

func main() {
	var job Job
	if err := json.Unmarshal([]byte(os.Args[1]), &job); err != nil {
		log.Fatal(err)
	}
	var pools []lockredis.Pool
	for _, port := range job.Ports {
		client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port)})
		pools = append(pools, goredis.NewPool(client))
	}
	worker := &worker{job: job, redsync: redsync.New(pools...), input: bufio.NewReader(os.Stdin)}
	warm := worker.mutex(fmt.Sprintf("warm-up/%d", os.Getpid()))
	for range 200 {
		acquire(warm)
		release(warm)
	}
	fmt.Println("ready")
	for worker.hear() {
		line, err := json.Marshal(worker.turn())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
}

func (w *worker) turn() any {
	switch w.job.Work {
	case "pairs":
		return w.pairs()
	case "acquire":
		return w.acquires()
	case "holds":
		return w.holds()
	case "keep":
		return w.keep()
	}
	log.Fatalf("no work is called %q", w.job.Work)
	return nil
}

func (w *worker) mutex(name string) *redsync.Mutex {
	lease := time.Duration(w.job.LeaseMillis) * time.Millisecond
	return w.redsync.NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(tries))
}

// hear waits for the next line of the harness. It returns false if there is none.
func (w *worker) hear() bool {
	_, err := w.input.ReadString('\n')
	return err == nil
}

func (w *worker) pause() {
	time.Sleep(time.Duration(w.job.PauseMicros) * time.Microsecond)
}

func acquire(mutex *redsync.Mutex) {
	if err := mutex.LockContext(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func release(mutex *redsync.Mutex) {
	if _, err := mutex.UnlockContext(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func (w *worker) pairs() any {
	began := time.Now()
	var sum atomic.Int64
	var callers sync.WaitGroup
	for caller := range w.job.Callers {
		callers.Go(func() {
			mutex := w.mutex(fmt.Sprintf("%s/%d", w.job.Names, caller))
			for time.Since(began) < time.Duration(w.job.Millis)*time.Millisecond {
				acquire(mutex)
				release(mutex)
				sum.Add(1)
			}
		})
	}
	callers.Wait()
	return map[string]int64{"pairs": sum.Load(), "micros": time.Since(began).Microseconds()}
}

func (w *worker) acquires() any {
	began := time.Now()
	acquires, releases, pairs := []float64{}, []float64{}, []float64{}
	micros := func(since time.Time) float64 { return float64(time.Since(since).Nanoseconds()) / 1e3 }
	mutex := w.mutex(w.job.Names)
	for time.Since(began) < time.Duration(w.job.Millis)*time.Millisecond {
		asked := time.Now()
		acquire(mutex)
		acquires = append(acquires, micros(asked))
		w.pause()
		asked = time.Now()
		release(mutex)
		releases = append(releases, micros(asked))
		w.pause()
		asked = time.Now()
		acquire(mutex)
		release(mutex)
		pairs = append(pairs, micros(asked))
		w.pause()
	}
	return map[string][]float64{"acquires": acquires, "releases": releases, "pairs": pairs}
}

func (w *worker) holds() any {
	began := time.Now()
	var lock sync.Mutex
	holds := [][2]int64{}
	var callers sync.WaitGroup
	for range w.job.Callers {
		callers.Go(func() {
			mutex := w.mutex(w.job.Names)
			for time.Since(began) < time.Duration(w.job.Millis)*time.Millisecond {
				acquire(mutex)
				from := time.Now().UnixMicro()
				time.Sleep(time.Duration(w.job.HoldMicros) * time.Microsecond)
				lock.Lock()
				holds = append(holds, [2]int64{from, time.Now().UnixMicro()})
				lock.Unlock()
				release(mutex)
				w.pause()
			}
		})
	}
	callers.Wait()
	return map[string][][2]int64{"holds": holds}
}

// Extends each lock every third of its lease, in a loop as a user would write it: redsync has no watchdog.
func (w *worker) keep() any {
	var held atomic.Int64
	var keepers sync.WaitGroup
	stop := make(chan struct{})
	for number := range w.job.Locks {
		mutex := w.mutex(fmt.Sprintf("%s/%020d", w.job.Names, number))
		acquire(mutex)
		keepers.Go(func() {
			ticker := time.NewTicker(time.Duration(w.job.LeaseMillis) * time.Millisecond / 3)
			defer ticker.Stop()
			for {
				select {
				case <-stop:
					held.Add(1)
					return
				case <-ticker.C:
					if extended, err := mutex.ExtendContext(context.Background()); err != nil || !extended {
						return
					}
				}
			}
		})
	}
	fmt.Println("held")
	w.hear()
	close(stop)
	keepers.Wait()
	return map[string]int64{"held": held.Load()}
}
