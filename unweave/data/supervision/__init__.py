"""What a method is told beside the images: specifications, parser, samplers."""
