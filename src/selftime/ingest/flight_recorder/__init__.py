"""Reads dumps of PyTorch's Flight Recorder, pickled or as JSON, without running what they hold."""
