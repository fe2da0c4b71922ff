"""The log read by Structured Streaming: micro-batch and continuous mode."""
