"""Links between rows: device work to launches, frames to callers, backward to forward, lines."""
