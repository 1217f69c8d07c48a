"""`galint experiment`: one model trained with the large batch, with micro-batches, and with each mistake."""
