"""Keep the index in line with the stores and the model: begin, fill and swap its generations."""
