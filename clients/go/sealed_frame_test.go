package jobline_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	jobline "github.com/jobline/jobline/clients/go"
)

type frameVector struct {
	Name, Frame, Plain, Type, Key, Bytes, Error, Value, Hashed string
}

// frameVectors are those that all clients share.
func frameVectors(t *testing.T) (vectors map[string][]frameVector, codec *jobline.Codec) {
	t.Helper()
	data, err := os.ReadFile("../../tests/conformance/codec.json")
	if err != nil {
		t.Skip(err)
	}
	var keys struct {
		Keys   map[string]string
		TagKey string `json:"tag_key"`
	}
	raw := map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(data, &keys), json.Unmarshal(data, &raw)); err != nil {
		t.Fatal(err)
	}
	vectors = map[string][]frameVector{}
	for _, kind := range []string{"read", "unframed", "refuse", "tags"} {
		var some []frameVector
		if err := json.Unmarshal(raw[kind], &some); err != nil || len(some) == 0 {
			t.Fatalf("%s: %d, %v", kind, len(some), err)
		}
		vectors[kind] = some
	}
	ring := map[string][]byte{}
	for id, key := range keys.Keys {
		ring[id] = unhex(t, key)
	}
	codec = must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{
		Keys: jobline.NewKeyMap(ring, func(string) string { return "tenant-7" }), TagKey: unhex(t, keys.TagKey),
	}))
	return vectors, codec
}

func unhex(t *testing.T, text string) []byte { return must[[]byte](t)(hex.DecodeString(text)) }

func TestFramesOfAllClientsAreRead(t *testing.T) {
	vectors, codec := frameVectors(t)
	for _, one := range vectors["read"] {
		plain, contentType, err := codec.Open(unhex(t, one.Frame))
		if err != nil || !bytes.Equal(plain, unhex(t, one.Plain)) || contentType != one.Type {
			t.Errorf("%s: got %x %q, %v", one.Name, plain, contentType, err)
		}
	}
	for _, one := range vectors["unframed"] {
		plain, contentType, err := codec.Open(unhex(t, one.Bytes))
		if err != nil || !bytes.Equal(plain, unhex(t, one.Bytes)) || contentType != "" {
			t.Errorf("%s: got %x %q, %v", one.Name, plain, contentType, err)
		}
	}
	for _, one := range vectors["refuse"] {
		_, _, err := codec.Open(unhex(t, one.Frame))
		if !errors.Is(err, jobline.ErrSealed) || errors.Is(err, jobline.ErrKeyErased) != (one.Error == "key_erased") || jobline.Retryable(err) {
			t.Errorf("%s: got %v", one.Name, err)
		}
	}
	for _, one := range vectors["tags"] {
		if got := codec.Tag(one.Name, one.Value); got != one.Hashed {
			t.Errorf("%s: got %s", one.Name, got)
		}
	}
}

func TestWhatIsSealedIsOpened(t *testing.T) {
	_, encrypting := frameVectors(t)
	deflating := must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{}))
	leaving := must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{NotDeflated: true}))
	for _, data := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("ha"), 1_000), {0x00, 0x4a, 0x4c, 9}} {
		for _, codec := range []*jobline.Codec{encrypting, deflating, leaving} {
			frame, keyID, err := codec.Seal(data, "text/plain", "g")
			if err != nil || (keyID != "") != (codec == encrypting) {
				t.Fatalf("key %q, %v", keyID, err)
			}
			plain, contentType, err := codec.Open(frame)
			if err != nil || !bytes.Equal(plain, data) || contentType != "text/plain" {
				t.Errorf("%q: got %q %q, %v", data, plain, contentType, err)
			}
			if isSmall := len(frame) < len(data); isSmall != (len(data) > 256 && codec != leaving) {
				t.Errorf("%d bytes became %d", len(data), len(frame))
			}
		}
	}
	first, _, _ := encrypting.Seal([]byte("same"), "", "")
	second, _, _ := encrypting.Seal([]byte("same"), "", "")
	if bytes.Equal(first, second) {
		t.Error("two frames have the same nonce")
	}
}

func TestInflatingHasALimit(t *testing.T) {
	large := bytes.Repeat([]byte{0}, 100_001)
	codec := must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{InflatedBytesMax: 100_000}))
	frame, _, _ := codec.Seal(large, "", "")
	if _, _, err := codec.Open(frame); !errors.Is(err, jobline.ErrSealed) || !strings.Contains(err.Error(), "more than 100000 bytes") {
		t.Errorf("got %v", err)
	}
	frame, _, _ = codec.Seal(large[1:], "", "")
	if plain, _, err := codec.Open(frame); err != nil || len(plain) != 100_000 {
		t.Errorf("got %d bytes, %v", len(plain), err)
	}
}

func TestTagWithoutItsKeyIsRefused(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "needs CodecOptions.TagKey") {
			t.Errorf("got %s", said)
		}
	}()
	got := must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{})).Tag("email", "a@b.c")
	t.Errorf("got %s", got)
}

func TestKeyMapWithoutAFunctionPanicsByName(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "which key is current") {
			t.Errorf("panicked with %q", text)
		}
	}()
	jobline.NewKeyMap(nil, nil)
}

func TestCodecRefusesWhatCannotBe(t *testing.T) {
	for _, options := range []jobline.CodecOptions{
		{InflatedBytesMax: -1}, {TagKey: []byte("short")}, {HashedTags: []string{"email"}},
	} {
		if _, err := jobline.NewCodec(options); !errors.Is(err, jobline.ErrInvalidArgument) {
			t.Errorf("%+v: got %v", options, err)
		}
	}
	if _, err := jobline.NewCodec(jobline.CodecOptions{TagKey: []byte("short")}); err == nil || !strings.Contains(err.Error(), "has 5 bytes, not 32") {
		t.Errorf("got %v", err)
	}
	for id, key := range map[string][]byte{"": make([]byte, 32), "k": make([]byte, 16), strings.Repeat("k", 65): make([]byte, 32)} {
		ring := jobline.NewKeyMap(map[string][]byte{id: key}, func(string) string { return id })
		codec := must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{Keys: ring}))
		if _, _, err := codec.Seal(nil, "", ""); !errors.Is(err, jobline.ErrCodec) || errors.Is(err, jobline.ErrSealed) {
			t.Errorf("%q: got %v", id, err)
		}
	}
	codec := must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{}))
	if _, _, err := codec.Seal(nil, strings.Repeat("t", 129), ""); !errors.Is(err, jobline.ErrCodec) {
		t.Errorf("got %v", err)
	}
}

func FuzzOpenRefusesWhatIsNoFrame(f *testing.F) {
	codec, err := jobline.NewCodec(jobline.CodecOptions{
		Keys: jobline.NewKeyMap(map[string][]byte{"k": make([]byte, 32)}, func(string) string { return "k" }), InflatedBytesMax: 1 << 20,
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, size := range []int{0, 10, 1_000} {
		frame, _, _ := codec.Seal(make([]byte, size), "a/b", "")
		f.Add(frame)
	}
	f.Add([]byte{0x00, 0x4a, 0x4c, 1, 1, 0, 0, 0x78})
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := codec.Open(data); err != nil && !errors.Is(err, jobline.ErrSealed) {
			t.Errorf("%x: %v", data, err)
		}
	})
}
