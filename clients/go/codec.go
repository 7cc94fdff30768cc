package jobline

import (
	"bytes"
	"encoding/json"
)

const jsonType = "application/json"

// Encode returns the bytes of a payload as Push would store them, and their content type: "" for
// bytes. It returns ErrCodec for what has no JSON.
func Encode(value any) (data []byte, contentType string, err error) { return encode(value) }

// Decode reads a payload or a result into a value: as it is into a *[]byte or *json.RawMessage, as JSON into
// anything else; nothing is the zero value. It returns ErrCodec for what is no such JSON.
func Decode(data []byte, into any) error { return decode(data, into) }

// encode returns the bytes of a value and their content type, "" for bytes.
func encode(value any) ([]byte, string, error) {
	switch v := value.(type) {
	case nil:
		return nil, "", nil
	case []byte:
		return v, "", nil
	case json.RawMessage:
		return v, jsonType, nil
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, "", newError(ErrCodec, "no JSON for this %T: %v", value, err).because(err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), jsonType, nil
}

// decode reads bytes into a value: as they are into a []byte, as JSON into anything else.
func decode(data []byte, into any) error {
	switch v := into.(type) {
	case *[]byte:
		*v = data
		return nil
	case *json.RawMessage:
		*v = data
		return nil
	case *any:
		if len(data) > 0 && !json.Valid(data) {
			// What a worker returned is JSON or bytes, and a result says nothing of it.
			*v = data
			return nil
		}
	}
	if len(data) == 0 {
		return nil // no value is the zero value
	}
	if err := json.Unmarshal(data, into); err != nil {
		return newError(ErrCodec, "not JSON of a %T: %v", into, err).because(err)
	}
	return nil
}
