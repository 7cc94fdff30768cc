// Package given refuses by name what a program has left out.
package given

import (
	"reflect"

	jobline "github.com/jobline/jobline/clients/go"
)

// NotNil returns an ErrInvalidArgument about the field if its value is nil, or an interface that holds a nil pointer.
func NotNil(field string, value any, why string) error {
	if v := reflect.ValueOf(value); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return jobline.InvalidArgument(field, why)
	}
	return nil
}

// Transaction is NotNil for the transaction of a program.
func Transaction(tx any) error {
	return NotNil("tx", tx, "is nil: begin a transaction, and look at the error of that")
}
