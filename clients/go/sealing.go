package jobline

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// KeyRing has the keys of a codec. It is used by many goroutines. In a worker, a panic of it fails the attempt.
type KeyRing interface {
	// Current returns the key to encrypt with for jobs of a group, "" for those without one: an id (1 … 64
	// bytes of UTF-8) and 32 bytes.
	Current(group string) (id string, key []byte, err error)
	// Find returns the key with an id; nil without an error if there is none any more: it was erased, for
	// good. An error is for now: the job is tried again.
	Find(id string) ([]byte, error)
}

// KeyMap is a key ring in memory.
type KeyMap struct {
	mu      sync.RWMutex
	keys    map[string][]byte
	current func(group string) string
}

// NewKeyMap returns a key ring of keys by id, and of the function that says which one is current for a group:
// one for each tenant, so that it can be erased alone. It panics without that function.
func NewKeyMap(keys map[string][]byte, current func(group string) string) *KeyMap {
	if current == nil {
		panic("jobline: NewKeyMap needs the function that says which key is current")
	}
	return &KeyMap{keys: maps.Clone(keys), current: current}
}

// Current returns the current key of a group.
func (m *KeyMap) Current(group string) (string, []byte, error) {
	id := m.current(group)
	key, err := m.Find(id)
	if err == nil && key == nil {
		return "", nil, erased(id)
	}
	return id, key, err
}

// Find returns a key; nil if there is none.
func (m *KeyMap) Find(id string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.keys[id], nil
}

// Drop erases a key: nothing that was sealed with it can be read any more, anywhere.
func (m *KeyMap) Drop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, id)
}

func erased(id string) error {
	return newError(ErrKeyErased, "the key %q is not in the key ring: what was sealed with it cannot be read any more", id)
}

// CodecOptions are the settings of a Codec. The zero value deflates.
type CodecOptions struct {
	// Keys to encrypt with; default nil: nothing is encrypted.
	Keys KeyRing
	// NotDeflated leaves payloads and results as large as they are.
	NotDeflated bool
	// InflatedBytesMax is how large a payload or result may be when it is inflated; default 64 MiB.
	InflatedBytesMax int64
	// HashedTags are names of tags whose values nobody should read: a tag "email:a@b.c" is sent as
	// Codec.Tag("email", "a@b.c"), for "email" here. They need TagKey, of 32 bytes. It is none of the key ring, so
	// that jobs can be found by their tags after a key was erased.
	HashedTags []string
	TagKey     []byte
}

// Codec seals payloads and results: the server, its operators and its files see them deflated and encrypted.
// It is safe for use by many goroutines.
type Codec struct{ options CodecOptions }

// NewCodec returns a codec for ClientOptions.Codec and WorkerOptions.Codec.
func NewCodec(options CodecOptions) (*Codec, error) {
	switch {
	case options.InflatedBytesMax < 0:
		return nil, refuse("InflatedBytesMax", "must not be negative, and is %d", options.InflatedBytesMax)
	case len(options.TagKey) != 0 && len(options.TagKey) != keyBytes:
		return nil, refuse("TagKey", "has %d bytes, not %d", len(options.TagKey), keyBytes)
	case len(options.HashedTags) > 0 && len(options.TagKey) == 0:
		return nil, refuse("TagKey", "HashedTags need one")
	}
	options.InflatedBytesMax = or(options.InflatedBytesMax, 64<<20)
	options.HashedTags = slices.Clone(options.HashedTags)
	return &Codec{options}, nil
}

// Tag returns what a tag is sent as: 32 hexadecimal digits, to search for. It panics without a TagKey: the hash of an
// empty key hides nothing, and finds nothing.
func (c *Codec) Tag(name, value string) string {
	if c == nil || len(c.options.TagKey) == 0 {
		panic("jobline: Codec.Tag needs CodecOptions.TagKey")
	}
	hash := hmac.New(sha256.New, c.options.TagKey)
	hash.Write([]byte(name + "\x00" + value))
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// tags returns tags as they are sent.
func (c *Codec) tags(tags []string) []string {
	if len(c.options.HashedTags) == 0 {
		return tags
	}
	sent := slices.Clone(tags)
	for i, tag := range sent {
		if name, value, isPair := strings.Cut(tag, ":"); isPair && slices.Contains(c.options.HashedTags, name) {
			sent[i] = c.Tag(name, value)
		}
	}
	return sent
}

// Seal returns a sealed frame of some bytes with their content type ("" for bytes), and the id of its key, ""
// if it is not encrypted. The group is that of the job, or "".
func (c *Codec) Seal(data []byte, contentType, group string) (frame []byte, keyID string, err error) {
	seal, err := c.sealerFor(group)
	if err != nil {
		return nil, "", err
	}
	frame, err = seal.frame(data, contentType, "")
	return frame, seal.keyID, err
}

// sealing is a codec with the key for one thing.
type sealing struct {
	codec *Codec
	keyID string
	key   []byte
}

// sealerFor returns the sealing with the current key of a group.
func (c *Codec) sealerFor(group string) (sealing, error) {
	if c.options.Keys == nil {
		return sealing{codec: c}, nil
	}
	id, key, err := c.options.Keys.Current(group)
	switch {
	case err != nil:
		return sealing{}, keyError(err)
	case id == "" || len(id) > keyIDBytesMax || !utf8.ValidString(id):
		return sealing{}, newError(ErrCodec, "the id of a key has 1 … %d bytes of UTF-8", keyIDBytesMax)
	case len(key) != keyBytes:
		return sealing{}, newError(ErrCodec, "the key %q has %d bytes, not %d", id, len(key), keyBytes)
	}
	return sealing{c, id, key}, nil
}

// sealerWith returns the sealing with a key that was used before.
func (c *Codec) sealerWith(keyID string) (sealing, error) {
	key, err := c.find(keyID)
	return sealing{c, keyID, key}, err
}

func (c *Codec) find(keyID string) ([]byte, error) {
	if c.options.Keys == nil {
		return nil, newError(ErrCodec, "it is sealed with the key %q, and the codec has no keys", keyID)
	}
	key, err := c.options.Keys.Find(keyID)
	if err != nil {
		return nil, keyError(err)
	}
	if key == nil {
		return nil, erased(keyID)
	}
	return key, nil
}

func keyError(err error) error {
	if errors.Is(err, ErrKeyErased) {
		return err
	}
	return newError(ErrCodec, "the key ring: %v", err).because(err)
}

func (s *sealing) frame(data []byte, contentType, scope string) ([]byte, error) {
	return makeFrame(data, contentType, s.keyID, s.key, !s.codec.options.NotDeflated, scope)
}

// Open returns what is in a sealed frame, and its content type; what is no frame comes back as it is, with "".
// It returns ErrKeyErased if its key is not there any more, and ErrSealed for what cannot be read otherwise.
func (c *Codec) Open(data []byte) (plain []byte, contentType string, err error) {
	plain, contentType, _, err = c.open(data)
	return plain, contentType, err
}

// open returns also the id of the frame's key. The codec may be nil, which reads what is no frame.
func (c *Codec) open(data []byte) (plain []byte, contentType, keyID string, err error) {
	if !isFrame(data) {
		return data, "", "", nil
	}
	if c == nil {
		return nil, "", "", newError(ErrCodec, "it is sealed, and there is no codec to read it (ClientOptions.Codec, WorkerOptions.Codec)")
	}
	f, err := parseFrame(data)
	if err != nil {
		return nil, "", "", err
	}
	plain = f.body
	if f.keyID != "" {
		key, err := c.find(f.keyID)
		if err == nil {
			plain, err = f.decrypt(key)
		}
		if err != nil {
			return nil, "", f.keyID, err
		}
	}
	if f.flags&frameDeflated != 0 {
		if plain, err = inflate(plain, c.options.InflatedBytesMax); err != nil {
			return nil, "", f.keyID, err
		}
	}
	return plain, f.contentType, f.keyID, nil
}
