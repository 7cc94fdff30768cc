package jobline

import (
	"bytes"
	"compress/zlib"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"unicode/utf8"
)

// A sealed frame says itself what it is, so that a result, which has no headers, is read like a payload:
//
//	magic    00 4A 4C, which begins neither JSON nor text
//	version  1
//	flags    bit 0: deflated (zlib, RFC 1950); bit 1: encrypted
//	key      its length in a byte, and its id; none unless encrypted
//	type     its length in a byte, and the content type of what is inside
//	body     as it is; or 12 bytes of nonce and AES-256-GCM with all bytes before the nonce as
//	         associated data
const (
	frameVersion   = 1
	frameDeflated  = 1
	frameEncrypted = 2

	keyIDBytesMax       = 64
	contentTypeBytesMax = 128
	keyBytes            = 32
	nonceBytes          = 12
	// Smaller than that, deflating gains nothing.
	deflateBytesMin = 256
	// SealedType is the content type of a job whose payload is a sealed frame.
	SealedType = "application/vnd.jobline.sealed"
	// KeyHeader is the header of a job that has the id of the key of its payload.
	KeyHeader = "jobline-key"
)

var frameMagic = []byte{0x00, 0x4a, 0x4c}

func isFrame(data []byte) bool {
	return len(data) > len(frameMagic) && bytes.HasPrefix(data, frameMagic)
}

// frame is a sealed frame, taken apart.
type frame struct {
	flags       byte
	keyID       string
	contentType string
	head, body  []byte
}

func badFrame(format string, arguments ...any) error {
	return newError(ErrSealed, "a sealed frame "+format, arguments...)
}

// parseFrame takes a frame apart.
func parseFrame(data []byte) (frame, error) {
	rest := data[len(frameMagic):]
	if rest[0] != frameVersion {
		return frame{}, badFrame("of version %d: this client reads version %d", rest[0], frameVersion)
	}
	if len(rest) < 2 {
		return frame{}, badFrame("ends before its flags")
	}
	f := frame{flags: rest[1]}
	if f.flags&^(frameDeflated|frameEncrypted) != 0 {
		return frame{}, badFrame("has unknown flags: %#x", f.flags)
	}
	keyID, rest, err := shortText(rest[2:], "key id", keyIDBytesMax)
	if err != nil {
		return frame{}, err
	}
	contentType, rest, err := shortText(rest, "content type", contentTypeBytesMax)
	if err != nil {
		return frame{}, err
	}
	if isEncrypted := f.flags&frameEncrypted != 0; isEncrypted != (keyID != "") {
		return frame{}, badFrame("is encrypted without a key id, or has one and is not")
	}
	f.keyID, f.contentType = keyID, contentType
	f.head, f.body = data[:len(data)-len(rest)], rest
	return f, nil
}

func shortText(data []byte, what string, bytesMax int) (text string, rest []byte, err error) {
	if len(data) == 0 || len(data) < 1+int(data[0]) {
		return "", nil, badFrame("ends within its %s", what)
	}
	size := int(data[0])
	if size > bytesMax {
		return "", nil, badFrame("has a %s of %d bytes, more than %d", what, size, bytesMax)
	}
	text = string(data[1 : 1+size])
	if !utf8.ValidString(text) {
		return "", nil, badFrame("has a %s that is not UTF-8", what)
	}
	return text, data[1+size:], nil
}

// makeFrame returns a frame. A scope makes the same frame of the same bytes, key and scope: the server
// compares the payloads of pushes that have the same key. Without one every frame is another.
func makeFrame(data []byte, contentType, keyID string, key []byte, mayDeflate bool, scope string) ([]byte, error) {
	if len(contentType) > contentTypeBytesMax {
		return nil, newError(ErrCodec, "a content type is at most %d bytes to be sealed, not %d", contentTypeBytesMax, len(contentType))
	}
	flags := byte(0)
	if mayDeflate && len(data) >= deflateBytesMin {
		if deflated := deflate(data); len(deflated) < len(data) {
			data, flags = deflated, flags|frameDeflated
		}
	}
	if key != nil {
		flags |= frameEncrypted
	}
	made := make([]byte, 0, len(frameMagic)+4+len(keyID)+len(contentType)+nonceBytes+len(data)+aes.BlockSize)
	made = append(append(made, frameMagic...), frameVersion, flags, byte(len(keyID)))
	made = append(append(made, keyID...), byte(len(contentType)))
	made = append(made, contentType...)
	if key == nil {
		return append(made, data...), nil
	}
	sealer, err := sealerOf(key)
	if err != nil {
		return nil, err
	}
	head := made[:len(made):len(made)]
	nonce := nonceOf(key, scope, head, data)
	return sealer.Seal(append(made, nonce...), nonce, data, head), nil
}

// nonceOf returns a random nonce, or with a scope one that a keyed hash makes of all that is sealed: it is the
// same only for the same frame.
func nonceOf(key []byte, scope string, head, data []byte) []byte {
	nonce := make([]byte, nonceBytes)
	if scope == "" {
		_, _ = rand.Read(nonce) // never fails
		return nonce
	}
	own := hmac.New(sha256.New, key)
	own.Write([]byte("jobline nonce"))
	hash := hmac.New(sha256.New, own.Sum(nil))
	for _, part := range [][]byte{[]byte(scope), head, data} {
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part)))
		hash.Write(part)
	}
	copy(nonce, hash.Sum(nil))
	return nonce
}

func sealerOf(key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, newError(ErrCodec, "a key has %d bytes, not %d", len(key), keyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, newError(ErrCodec, "%v", err)
	}
	return cipher.NewGCM(block)
}

// decrypt returns the body of an encrypted frame.
func (f *frame) decrypt(key []byte) ([]byte, error) {
	if len(f.body) < nonceBytes {
		return nil, badFrame("ends within its nonce")
	}
	sealer, err := sealerOf(key)
	if err != nil {
		return nil, err
	}
	plain, err := sealer.Open(nil, f.body[:nonceBytes], f.body[nonceBytes:], f.head)
	if err != nil {
		return nil, badFrame("was changed, or has another key %q than it was made with", f.keyID)
	}
	return plain, nil
}

func deflate(data []byte) []byte {
	var small bytes.Buffer
	writer := zlib.NewWriter(&small)
	_, _ = writer.Write(data) // into memory
	_ = writer.Close()
	return small.Bytes()
}

// inflate returns what was deflated, up to so many bytes.
func inflate(data []byte, bytesMax int64) ([]byte, error) {
	from := bytes.NewReader(data)
	reader, err := zlib.NewReader(from)
	if err != nil {
		return nil, badFrame("is not deflated, though it says so")
	}
	plain, err := io.ReadAll(io.LimitReader(reader, bytesMax+1))
	switch {
	case err != nil:
		return nil, badFrame("cannot be inflated")
	case int64(len(plain)) > bytesMax:
		return nil, badFrame("has more than %d bytes when it is inflated (CodecOptions.InflatedBytesMax)", bytesMax)
	case from.Len() > 0:
		return nil, badFrame("has bytes after the end of what is deflated")
	}
	return plain, nil
}
