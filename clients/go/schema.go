package jobline

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// A schema over this size is not announced: the server takes none.
const schemaBytesMax = 64 << 10

// schemaText returns the JSON Schema of a type as encoding/json writes and reads it; "" if there is nothing to
// say: for bytes, for any and NoResult, and for a type whose schema would be too large.
func schemaText(of reflect.Type) string {
	if of == nil || of == reflect.TypeFor[NoResult]() || of == bytesType {
		return ""
	}
	b := schemaBuilder{names: map[reflect.Type]string{}, definitions: map[string]any{}}
	schema := b.of(of)
	if len(schema) == 0 {
		return ""
	}
	if name, isRef := b.names[of]; isRef && !b.isReferredTo(name) {
		schema = b.definitions[name].(map[string]any)
		delete(b.definitions, name)
	}
	if len(b.definitions) > 0 {
		whole := map[string]any{"$defs": b.definitions}
		for key, value := range schema {
			whole[key] = value
		}
		schema = whole
	}
	text, err := json.Marshal(schema)
	if err != nil || len(text) > schemaBytesMax {
		return ""
	}
	return string(text)
}

var (
	bytesType         = reflect.TypeFor[[]byte]()
	timeType          = reflect.TypeFor[time.Time]()
	numberType        = reflect.TypeFor[json.Number]()
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	unmarshalerType   = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	textReaderType    = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// schemaBuilder collects the definitions of structs, so that types may refer to themselves. An empty schema takes
// anything.
type schemaBuilder struct {
	names       map[reflect.Type]string
	definitions map[string]any
}

func (b *schemaBuilder) isReferredTo(name string) bool {
	text, _ := json.Marshal(b.definitions)
	return strings.Contains(string(text), `"`+refTo(name)+`"`)
}

func refTo(name string) string { return "#/$defs/" + name }

func (b *schemaBuilder) of(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == numberType:
		return map[string]any{"type": "number"}
	case has(t, marshalerType), has(t, unmarshalerType):
		return nil // only it knows
	case t.Kind() != reflect.Pointer && (has(t, textMarshalerType) || has(t, textReaderType)):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Pointer:
		return orNull(b.of(t.Elem()))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return orNull(map[string]any{"type": "string", "contentEncoding": "base64"})
		}
		return orNull(b.array(t))
	case reflect.Array:
		return b.array(t)
	case reflect.Map:
		return orNull(b.object(t))
	case reflect.Struct:
		return b.record(t)
	}
	return nil // an interface takes anything; channels and functions have no JSON
}

// has reports whether a type, or a pointer to it, has the methods of an interface.
func has(t, methods reflect.Type) bool {
	return t.Implements(methods) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(methods)
}

// orNull returns the schema of what may be nil.
func orNull(schema map[string]any) map[string]any {
	if len(schema) == 0 {
		return nil
	}
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}

func (b *schemaBuilder) array(t reflect.Type) map[string]any {
	schema := map[string]any{"type": "array"}
	if items := b.of(t.Elem()); len(items) > 0 {
		schema["items"] = items
	}
	return schema
}

func (b *schemaBuilder) object(t reflect.Type) map[string]any {
	schema := map[string]any{"type": "object"}
	if values := b.of(t.Elem()); len(values) > 0 {
		schema["additionalProperties"] = values
	}
	return schema
}

func (b *schemaBuilder) record(t reflect.Type) map[string]any {
	name, isKnown := b.names[t]
	if !isKnown {
		name = b.freeName(t)
		b.names[t] = name
		b.definitions[name] = map[string]any{}
		record := map[string]any{"type": "object"}
		if t.Name() != "" {
			record["title"] = titleOf(t)
		}
		properties, required := map[string]any{}, []string{}
		for _, field := range fieldsOf(t) {
			properties[field.name] = b.field(field)
			if field.isRequired {
				required = append(required, field.name)
			}
		}
		record["properties"] = properties
		if len(required) > 0 {
			record["required"] = required
		}
		b.definitions[name] = record
	}
	return map[string]any{"$ref": refTo(name)}
}

func (b *schemaBuilder) field(field jsonField) map[string]any {
	schema := b.of(field.of)
	if field.isQuoted {
		schema = map[string]any{"type": "string"}
	}
	if schema == nil {
		schema = map[string]any{}
	}
	return schema
}

// freeName returns a name that no other type has: two packages may each have a Mail.
func (b *schemaBuilder) freeName(t reflect.Type) string {
	name := titleOf(t)
	for number := 2; b.definitions[name] != nil; number++ {
		name = fmt.Sprintf("%s%d", titleOf(t), number)
	}
	return name
}

// titleOf returns the name of a type, without the types that it was made with.
func titleOf(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return or(name, "Object")
}

// jsonField is a field of a struct as encoding/json has it.
type jsonField struct {
	name                 string
	of                   reflect.Type
	isRequired, isQuoted bool
	depth                int
}

// fieldsOf returns the fields of a struct and of those that are embedded in it; of two with the same name, the
// less deeply embedded one.
func fieldsOf(t reflect.Type) []jsonField {
	var fields []jsonField
	places := map[string]int{}
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		isEmbedded := field.Anonymous && name == "" && structOf(field.Type) != nil
		if name == "-" && options == "" || !field.IsExported() || isEmbedded || isHidden(t, field.Index) {
			continue
		}
		one := jsonField{
			name: or(name, field.Name), of: field.Type, depth: len(field.Index),
			isRequired: field.Type.Kind() != reflect.Pointer && !hasOption(options, "omitempty") && !hasOption(options, "omitzero"),
			isQuoted:   hasOption(options, "string"),
		}
		if place, isThere := places[one.name]; isThere {
			if fields[place].depth > one.depth {
				fields[place] = one
			}
			continue
		}
		places[one.name] = len(fields)
		fields = append(fields, one)
	}
	return fields
}

// isHidden reports whether a field is in an embedded struct that has a name in JSON, or is none of it.
func isHidden(t reflect.Type, index []int) bool {
	for depth := 1; depth < len(index); depth++ {
		if t.FieldByIndex(index[:depth]).Tag.Get("json") != "" {
			return true
		}
	}
	return false
}

func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && t != timeType {
		return t
	}
	return nil
}

func hasOption(options, wanted string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == wanted {
			return true
		}
	}
	return false
}
