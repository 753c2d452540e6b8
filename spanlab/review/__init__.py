"""Review and adjudication: queues, writes, and the editor of spans in the browser."""
