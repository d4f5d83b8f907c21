// A worker in Go for the trial: adds, and says so in the ledger.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	worker "trial/worker"
)

func main() {
	server, queue, ledger, name := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	w := worker.New(server, worker.Options{Queue: queue, Name: name, LeaseSeconds: 2})
	number := map[string]any{"type": "integer"}
	fields := map[string]any{"n": number, "by": number}
	w.Step("add", func(task *worker.Task) (any, error) {
		var given struct{ N, By int }
		if err := task.Read(&given); err != nil {
			return nil, worker.Final(err)
		}
		time.Sleep(100 * time.Millisecond)
		// The ledger takes each key once, as a bank takes an idempotency key.
		file, err := os.OpenFile(filepath.Join(ledger, task.ID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintf(file, "go %d", given.By)
			err = file.Close()
		} else if os.IsExist(err) {
			err = nil
		}
		time.Sleep(100 * time.Millisecond)
		return given.N + given.By, err
	}, worker.Schemas{Input: map[string]any{"type": "object", "properties": fields}, Output: number})
	log.Fatal(w.Run(context.Background()))
}
