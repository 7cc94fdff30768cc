package jobline

import "context"

// EntityRef is one of many things of a kind, such as an account: its methods are jobs, which run one
// at a time, in the order of their pushes, and prefer the worker that had the last one.
type EntityRef struct {
	client    *Client
	kind, key string
	options   PushOptions
}

// Entity returns a reference to one entity; nothing is sent. The kind is the queue of its jobs, the
// key (1 … 256 characters) their group, a method their name. Options, which may be nil, are those of
// all calls by this reference.
func (c *Client) Entity(kind, key string, options *PushOptions) *EntityRef {
	ref := &EntityRef{client: c, kind: kind, key: key}
	if options != nil {
		ref.options = *options
	}
	return ref
}

// Push pushes a call of a method. Options, which may be nil, override those of the reference; Name
// and Group are the method and the key.
func (e *EntityRef) Push(ctx context.Context, method string, payload any, options *PushOptions) (Pushed, error) {
	if e.key == "" {
		return Pushed{}, refuse("group", "the key says which entity is meant, and is empty")
	}
	merged := e.options
	if options != nil {
		override(&merged, options)
	}
	merged.Name, merged.Group, merged.Sticky = method, e.key, true
	return e.client.Push(ctx, e.kind, payload, &merged)
}

// Call pushes a call of a method of an entity and returns its result, as PushAndWait does.
func Call[R any](ctx context.Context, entity *EntityRef, method string, payload any, options *PushOptions) (R, error) {
	var none R
	pushed, err := entity.Push(ctx, method, payload, options)
	if err != nil {
		return none, err
	}
	end, err := entity.client.WaitOne(ctx, pushed.ID)
	if err != nil {
		return none, err
	}
	return ResultOf[R](end)
}
