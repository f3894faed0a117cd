"""What the names of kernels tell: each distinct name is read once."""

import polars as pl

from selftime import names


def with_meanings(work: pl.DataFrame) -> pl.DataFrame:
    """Device work with what its kernels' names tell.

    Columns: name as text; short, the function's name; class, one of `names.KERNEL_CLASSES`, that of
    communication being known by its arguments too; tensor_cores, null where the name is silent.
    """
    unique = work["name"].unique()
    texts = unique.cast(pl.String).to_list()
    told = pl.DataFrame(
        {
            "name": unique,
            "short": pl.Series([names.short_kernel_name(text) for text in texts], dtype=pl.String),
            "class": pl.Series([names.kernel_class(text) for text in texts], dtype=pl.String),
            "tensor_cores": pl.Series(
                [names.uses_tensor_cores(text) for text in texts], dtype=pl.Boolean
            ),
        }
    )
    collective = pl.when(pl.col("kind") == "communication").then(pl.lit("collective"))
    return work.join(told, on="name", how="left", maintain_order="left").with_columns(
        pl.col("name").cast(pl.String), collective.otherwise("class").alias("class")
    )
