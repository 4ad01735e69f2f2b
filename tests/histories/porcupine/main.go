// Checks histories of quorlock-sim with Porcupine. A history is correct if its operations could have happened in some order, each at
// one moment between its beginning and its end. Prints one line for each file: its name and three words, each "ok" or "broken".
//
//	go run . FILE...
//
// The three properties are those of ../read.py, which checks them by sorting.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The program fails if a search takes longer than this: it has no verdict.
const patience = time.Minute

type line struct {
	Operation string   `json:"operation"`
	Names     []string `json:"names"`
	Hold      *uint32  `json:"hold"`
	Access    *string  `json:"access"`
	Under     *uint32  `json:"under"`
	Invoke    int64    `json:"invoke"`
	Complete  *int64   `json:"complete"`
	Outcome   string   `json:"outcome"`
	Token     *uint64  `json:"token"`
}

// A stay of one hold in the section that a name protects.
type stay struct {
	id     int
	hold   uint32
	reads  bool
	under  uint32
	enters bool
}

const none = math.MaxUint32

func together(one, other stay) bool {
	return one.hold == other.hold ||
		(one.reads && (other.reads || one.under == other.hold)) ||
		(other.reads && other.under == one.hold)
}

// A lock. Its state is the stays inside, which are all compatible with each other.
var lock = porcupine.Model{
	Init: func() any { return []stay(nil) },
	Step: func(state, input, _ any) (bool, any) {
		inside, op := state.([]stay), input.(stay)
		after := make([]stay, 0, len(inside)+1)
		found := false
		for _, other := range inside {
			if op.enters && !together(op, other) {
				return false, state
			}
			if !op.enters && other.id == op.id {
				found = true
				continue
			}
			after = append(after, other)
		}
		if !op.enters {
			return found, after
		}
		after = append(after, op)
		sort.Slice(after, func(a, b int) bool { return after[a].id < after[b].id })
		return true, after
	},
	Equal: func(one, other any) bool {
		a, b := one.([]stay), other.([]stay)
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i].id != b[i].id {
				return false
			}
		}
		return true
	},
}

// Numbers that grow. If not strictly, equal numbers may follow each other.
func growing(strictly bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, _, output any) (bool, any) {
			last, next := state.(uint64), output.(uint64)
			return last < next || (!strictly && last == next), next
		},
	}
}

func read(path string) ([]line, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<26)
	var header struct {
		Format  string `json:"format"`
		Version int    `json:"format_version"`
	}
	var lines []line
	for first := true; scanner.Scan(); first = false {
		if first {
			if err := json.Unmarshal(scanner.Bytes(), &header); err != nil {
				return nil, err
			}
			if header.Format != "quorlock-history" || header.Version != 2 {
				return nil, fmt.Errorf("this reads quorlock-history 2, not %s %d", header.Format, header.Version)
			}
			continue
		}
		var one line
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return nil, err
		}
		lines = append(lines, one)
	}
	return lines, scanner.Err()
}

// A hold of one name.
type place struct {
	name string
	hold uint32
}

// Returns the operations for each model, in independent parts.
func operations(lines []line) (stays, tokens, stored, terms map[string][]porcupine.Operation) {
	stays, tokens = map[string][]porcupine.Operation{}, map[string][]porcupine.Operation{}
	stored, terms = map[string][]porcupine.Operation{}, map[string][]porcupine.Operation{}
	asked := map[place]int64{}
	for at, l := range lines {
		if l.Outcome != "ok" || len(l.Names) == 0 {
			continue
		}
		name := l.Names[0]
		number := porcupine.Operation{ClientId: at, Call: l.Invoke}
		if l.Token != nil {
			number.Output = *l.Token
		}
		switch l.Operation {
		case "grant":
			asked[place{name, *l.Hold}] = l.Invoke
			if *l.Access != "read" {
				number.Return = *l.Complete
				tokens[name] = append(tokens[name], number)
			}
		case "store":
			// Writes happened one after another, in the order of the lines.
			if l.Token != nil {
				number.Call, number.Return = int64(2*at), int64(2*at+1)
				stored[name] = append(stored[name], number)
			}
		case "use", "lead":
			s := stay{id: at, hold: *l.Hold, reads: *l.Access == "read", under: none, enters: true}
			if l.Under != nil {
				s.under = *l.Under
			}
			began := l.Invoke
			if call, known := asked[place{name, s.hold}]; known {
				began = min(began, call)
			}
			part := fmt.Sprintf("%s %s %t", l.Operation, name, *l.Access == "alone")
			enter := porcupine.Operation{ClientId: 2 * at, Input: s, Call: began, Return: l.Invoke}
			s.enters = false
			// The client may leave long after its last check.
			leave := porcupine.Operation{ClientId: 2*at + 1, Input: s, Call: *l.Complete, Return: math.MaxInt64}
			stays[part] = append(stays[part], enter, leave)
			if l.Operation == "lead" {
				number.Call, number.Return = int64(2*at), int64(2*at+1)
				terms[name] = append(terms[name], number)
			}
		}
	}
	return
}

func judge(model porcupine.Model, parts map[string][]porcupine.Operation) (bool, error) {
	for part, ops := range parts {
		switch porcupine.CheckOperationsTimeout(model, ops, patience) {
		case porcupine.Illegal:
			return false, nil
		case porcupine.Unknown:
			return false, fmt.Errorf("no verdict on %q (%d operations) in %v", part, len(ops), patience)
		}
	}
	return true, nil
}

func words(path string) (string, error) {
	lines, err := read(path)
	if err != nil {
		return "", err
	}
	stays, tokens, stored, terms := operations(lines)
	var verdicts [4]bool
	for i, one := range []struct {
		model porcupine.Model
		parts map[string][]porcupine.Operation
	}{{lock, stays}, {growing(true), tokens}, {growing(false), stored}, {growing(true), terms}} {
		if verdicts[i], err = judge(one.model, one.parts); err != nil {
			return "", err
		}
	}
	said := func(right bool) string {
		if right {
			return "ok"
		}
		return "broken"
	}
	return strings.Join([]string{said(verdicts[0]), said(verdicts[1] && verdicts[2]), said(verdicts[3])}, " "), nil
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, path := range os.Args[1:] {
		said, err := words(path)
		if err != nil {
			out.Flush()
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
		fmt.Fprintln(out, path, said)
	}
}
