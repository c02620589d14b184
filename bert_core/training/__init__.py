"""Pre-training, fine-tuning and evaluation of the encoder in `bert_core.model`."""
