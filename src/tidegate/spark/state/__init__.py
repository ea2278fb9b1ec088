"""What Spark keeps of a bucket between micro-batches, and how a checkpoint is read."""
