package outbox

// WaitingQueues is the query of a relay for the queues of its table, whose plan the tests look at.
func WaitingQueues(t Table) string { return t.spell(selectQueues) }

// RetryRows is the statement of RetryFailed.
func RetryRows(t Table) string { return t.spell(retryRows) }
