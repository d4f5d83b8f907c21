// Package worker is a worker of remote steps in Go: the standard library alone, one file, for Go 1.18 and later. Copy it
// into your project.
//
//	w := worker.New("http://127.0.0.1:7717", worker.Options{Queue: "gpu", Key: "olv_...", Name: "gpu-1"})
//	w.Step("resize", func(task *worker.Task) (any, error) {
//		var image struct{ URL string `json:"url"` }
//		if err := task.Read(&image); err != nil {
//			return nil, worker.Final(err)
//		}
//		if err := task.Progress(map[string]any{"done": 0.5}); err != nil {
//			return nil, err
//		}
//		return map[string]int{"width": 80}, nil
//	})
//	err := w.Run(context.Background())
//
// It claims one task after the other. While a function works, a goroutine renews the lease of its task. A function that
// returns an error or panics fails the task, and so does one whose output the server refuses; an error in Final says that
// another attempt would not help. A server that is away, or is restarted, is asked again until it is back.
package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

const (
	waitSeconds = 20
	triesMax    = 30
)

var retryDelay = time.Second

// ErrLeaseLost means that the task is for another worker now, or has ended: what was done of it does not count.
var ErrLeaseLost = errors.New("the lease of the task is lost")

// ErrRefused means that the server does not take a request: sent again, it would be refused again.
var ErrRefused = errors.New("the server refuses the request")

// ErrAway means that the server has not answered for a while.
var ErrAway = errors.New("the server was not reached")

type finalError struct{ error }

func (it finalError) Unwrap() error { return it.error }

type panicError struct{ text, stack string }

func (it panicError) Error() string { return it.text }

// Final makes an error one that another attempt would meet again.
func Final(err error) error { return finalError{err} }

// Options say which tasks a worker takes.
type Options struct {
	Queue        string
	Key          string
	Name         string
	LeaseSeconds float64
}

// Schemas are the JSON Schemas of a step, for people and for checks of flows; either may be nil.
type Schemas struct {
	Input  map[string]any `json:"input,omitempty"`
	Output map[string]any `json:"output,omitempty"`
}

// Handler does the tasks of a step; its result is the output.
type Handler func(task *Task) (any, error)

// Task is a task that was claimed.
type Task struct {
	ID    string          `json:"id"`
	Lease string          `json:"lease"`
	Name  string          `json:"step"`
	Input json.RawMessage `json:"input"`
	// Claims says how often the task was claimed; more than once: a worker before this one was lost.
	Claims int `json:"claims"`
	// LastProgress is what that worker said last.
	LastProgress json.RawMessage `json:"progress"`

	worker *Worker
	ctx    context.Context
	stop   context.CancelFunc
	mutex  sync.Mutex
	lost   bool
}

// Context is cancelled when the workflow no longer wants the task, or another worker has it.
func (task *Task) Context() context.Context { return task.ctx }

// Read decodes the input.
func (task *Task) Read(into any) error { return json.Unmarshal(task.Input, into) }

// Progress says how far it has come; people see it, and the next worker gets it if this one is lost.
func (task *Task) Progress(fields map[string]any) error {
	return task.beat(map[string]any{"progress": fields})
}

func (task *Task) beat(said map[string]any) error {
	said["lease"], said["lease_seconds"] = task.Lease, task.worker.options.LeaseSeconds
	var answer struct {
		IsCancelled bool `json:"is_cancelled"`
	}
	err := task.worker.post(context.Background(), "/tasks/"+task.ID+"/heartbeat", said, &answer)
	if errors.Is(err, ErrLeaseLost) {
		task.mutex.Lock()
		task.lost = true
		task.mutex.Unlock()
	}
	if answer.IsCancelled || errors.Is(err, ErrLeaseLost) {
		task.stop()
	}
	return err
}

func (task *Task) isLost() bool {
	task.mutex.Lock()
	defer task.mutex.Unlock()
	return task.lost
}

// keep renews the lease until the function has ended.
func (task *Task) keep(over <-chan struct{}) {
	ticker := time.NewTicker(time.Duration(task.worker.options.LeaseSeconds / 3 * float64(time.Second)))
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
			if err := task.beat(map[string]any{}); errors.Is(err, ErrLeaseLost) {
				return // Any other error: the lease lasts a while.
			}
		}
	}
}

// work calls the function, and says how it ended.
func (task *Task) work(handler Handler) error {
	over, kept := make(chan struct{}), make(chan struct{})
	go func() { task.keep(over); close(kept) }()
	output, err := call(handler, task)
	close(over)
	<-kept
	if task.isLost() {
		return nil
	}
	if err == nil {
		err = task.end("complete", map[string]any{"output": output})
		if err == nil || errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrAway) {
			return err
		}
	}
	return task.end("fail", failure(err)) // It failed, or its output does not fit the step, or is nothing for JSON.
}

func (task *Task) end(verb string, said map[string]any) error {
	said["lease"] = task.Lease
	return task.worker.post(context.Background(), "/tasks/"+task.ID+"/"+verb, said, nil)
}

func call(handler Handler, task *Task) (output any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = panicError{fmt.Sprintf("panic: %v", reason), string(debug.Stack())}
		}
	}()
	return handler(task)
}

func failure(err error) map[string]any {
	var final finalError
	var panicked panicError
	cause, isFinal := err, errors.As(err, &final)
	if isFinal {
		cause = final.error
	}
	said := map[string]any{"message": err.Error(), "retryable": !isFinal}
	said["type"] = strings.TrimPrefix(fmt.Sprintf("%T", cause), "*")
	if errors.As(err, &panicked) {
		said["type"], said["traceback"] = "panic", panicked.stack
	}
	return said
}

// Worker takes the tasks of a queue.
type Worker struct {
	server   string
	options  Options
	handlers map[string]Handler
	schemas  map[string]Schemas
	client   *http.Client
}

// New makes a worker of a server.
func New(server string, options Options) *Worker {
	if options.LeaseSeconds == 0 {
		options.LeaseSeconds = 30
	}
	return &Worker{
		server:   strings.TrimRight(server, "/") + "/api/v1",
		options:  options,
		handlers: map[string]Handler{},
		schemas:  map[string]Schemas{},
		client:   &http.Client{Timeout: (waitSeconds + 30) * time.Second},
	}
}

// Step lets a function do the tasks of a remote step; with schemas, people and flows see what it takes and gives.
func (w *Worker) Step(name string, handler Handler, schemas ...Schemas) {
	w.handlers[name], w.schemas[name] = handler, Schemas{}
	if len(schemas) > 0 {
		w.schemas[name] = schemas[0]
	}
}

// Run works until the context is done, and then gives its error; another error means that the server takes no claims of
// this worker.
func (w *Worker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		task, err := w.claim(ctx)
		switch {
		case errors.Is(err, ErrAway):
			log.Print(err)
		case err != nil:
			return err
		case task != nil:
			if err := task.work(w.handlers[task.Name]); err != nil {
				log.Printf("task %s: %v", task.ID, err)
			}
			task.stop()
		}
	}
	return ctx.Err()
}

// claim gives the next task, or nil if there was none for a while.
func (w *Worker) claim(ctx context.Context) (*Task, error) {
	wanted := map[string]any{
		"queue": w.options.Queue, "steps": w.schemas, "worker": w.options.Name,
		"lease_seconds": w.options.LeaseSeconds, "wait": waitSeconds,
	}
	var answer struct{ Task *Task }
	if err := w.post(ctx, "/tasks/claim", wanted, &answer); err != nil || answer.Task == nil {
		return nil, err
	}
	answer.Task.worker = w
	answer.Task.ctx, answer.Task.stop = context.WithCancel(ctx)
	return answer.Task, nil
}

// post sends a request until it is answered: each of them may be sent again.
func (w *Worker) post(ctx context.Context, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for try := 0; try < triesMax && ctx.Err() == nil; try++ {
		if done, err := w.try(ctx, path, data, into); done {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s%s", ErrAway, w.server, path)
}

// try sends a request once; whether it was answered by the server that is meant, and what its answer means.
func (w *Worker) try(ctx context.Context, path string, data []byte, into any) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server+path, bytes.NewReader(data))
	if err != nil {
		return true, err
	}
	request.Header.Set("content-type", "application/json")
	if w.options.Key != "" {
		request.Header.Set("authorization", "Bearer "+w.options.Key)
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return false, nil // It cannot be reached, or was stopped before it answered.
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, nil
	}
	if answer.StatusCode == http.StatusOK {
		if into == nil {
			return true, nil
		}
		return json.Unmarshal(said, into) == nil, nil // Else a proxy answers, and not in JSON.
	}
	var problem struct{ Detail string }
	_ = json.Unmarshal(said, &problem)
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false, nil // A server, or a proxy before it, that has done nothing yet.
	case http.StatusConflict:
		return true, fmt.Errorf("%w: %s", ErrLeaseLost, problem.Detail)
	default:
		return true, fmt.Errorf("%w: %d: %s", ErrRefused, answer.StatusCode, problem.Detail)
	}
}
