package jobline_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The format of the conformance vectors, as docs/clients.md of the repository describes it: variables,
// and the one way to match. A field that is not there is absent, which no value of JSON is.

type (
	object    = map[string]any
	variables map[string]string
)

var (
	absent  = new(struct{ _ byte })
	varName = regexp.MustCompile(`\$[a-z][a-z0-9_]*`)
)

func parsed(data []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

func (v variables) text(text string) string {
	return varName.ReplaceAllStringFunc(text, func(name string) string { return v[name[1:]] })
}

// filled is a request with its variables replaced and its short forms written out.
func (v variables) filled(value any) any {
	switch value := value.(type) {
	case string:
		return v.text(value)
	case []any:
		list := make([]any, 0, len(value))
		for _, item := range value {
			list = append(list, v.filled(item))
		}
		return list
	case object:
		return v.filledMap(value)
	}
	return value
}

func (v variables) filledMap(value object) any {
	if text, ok := only(value, "as_text"); ok {
		return base64.StdEncoding.EncodeToString([]byte(v.text(text.(string))))
	}
	if inner, ok := only(value, "as_json"); ok {
		data, _ := json.Marshal(v.filled(inner))
		return base64.StdEncoding.EncodeToString(data)
	}
	if times, ok := value["times"].(json.Number); ok && len(value) == 2 {
		count, _ := times.Int64()
		list := make([]any, count)
		for i := range list {
			list[i] = v.filled(value["of"])
		}
		return list
	}
	filled := object{}
	for name, item := range value {
		filled[v.text(name)] = v.filled(item)
	}
	return filled
}

func only(value object, name string) (any, bool) {
	inner, ok := value[name]
	return inner, ok && len(value) == 1
}

// match says where got is not as wanted; a variable that has no value yet takes it.
func (v variables) match(wanted, got any, path string) error {
	holds := false
	switch wanted := wanted.(type) {
	case nil:
		holds = got == absent
	case bool:
		holds = got == wanted
	case json.Number:
		holds = isNumber(wanted, got)
	case string:
		holds = v.matchText(wanted, got)
	case []any:
		return v.matchList(wanted, got, path)
	case object:
		return v.matchMap(wanted, got, path)
	}
	if !holds {
		return mismatch(path, wanted, got)
	}
	return nil
}

func mismatch(path string, wanted, got any) error {
	shown, _ := json.Marshal(got)
	if got == absent {
		shown = []byte("nothing")
	}
	return fmt.Errorf("%s: expected %v, got %s", path, wanted, shown)
}

// Numbers are equal as numbers: protobuf's JSON writes those of 64 bits as texts.
func isNumber(wanted json.Number, got any) bool {
	if _, isText := got.(string); !isText {
		if _, isNumber := got.(json.Number); !isNumber {
			return false
		}
	}
	a, err := wanted.Float64()
	b, other := json.Number(fmt.Sprint(got)).Float64()
	return err == nil && other == nil && a == b
}

func (v variables) matchText(wanted string, got any) bool {
	switch got.(type) {
	case string, json.Number:
	default:
		return false
	}
	text := fmt.Sprint(got)
	if name := strings.TrimPrefix(wanted, "$"); varName.FindString(wanted) == wanted && name != wanted {
		if _, known := v[name]; !known {
			v[name] = text
			return text != ""
		}
	}
	return text == v.text(wanted)
}

func (v variables) matchList(wanted []any, got any, path string) error {
	list, ok := got.([]any)
	if (!ok && got != absent) || len(list) != len(wanted) {
		return mismatch(path, wanted, got)
	}
	for i, item := range wanted {
		if err := v.match(item, list[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func (v variables) matchMap(wanted object, got any, path string) error {
	if inner, ok := only(wanted, "has"); ok {
		return v.matchSome(inner.([]any), got, path)
	}
	for _, form := range []string{"as_text", "as_json"} {
		if inner, ok := only(wanted, form); ok {
			return v.matchBytes(form, inner, got, path)
		}
	}
	fields, ok := got.(object)
	if !ok && got != absent {
		return mismatch(path, wanted, got)
	}
	for name, item := range wanted {
		inner, ok := fields[v.text(name)]
		if !ok {
			inner = absent
		}
		if err := v.match(item, inner, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func (v variables) matchBytes(form string, wanted, got any, path string) error {
	text, ok := got.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		return mismatch(path, wanted, got)
	}
	if form == "as_text" {
		return v.match(wanted, string(data), path)
	}
	value, err := parsed(data)
	if err != nil {
		return mismatch(path, wanted, got)
	}
	return v.match(wanted, value, path)
}

func (v variables) matchSome(wanted []any, got any, path string) error {
	list, _ := got.([]any)
	for _, item := range wanted {
		found := false
		for _, one := range list {
			if tried := v.copy(); tried.match(item, one, path) == nil {
				v.take(tried)
				found = true
				break
			}
		}
		if !found {
			return mismatch(path, item, got)
		}
	}
	return nil
}

func (v variables) copy() variables {
	tried := variables{}
	tried.take(v)
	return tried
}

func (v variables) take(from variables) {
	for name, value := range from {
		v[name] = value
	}
}
