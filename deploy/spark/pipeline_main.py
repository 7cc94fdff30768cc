"""What spark-submit and the Spark operator start: the command line `jobline-pipeline`."""

from jobline_pipeline.cli import main

if __name__ == "__main__":
    main()
