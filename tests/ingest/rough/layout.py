"""Section K of the catalogue: folders and paths, which `test_layout.py` holds."""

HELD_BY = {
    "54a": "test_layout.py::test_a_folder_of_many_files",
    "54b": "test_layout.py::test_other_files_are_left_alone",
    "54c": "test_layout.py::test_runs_in_folders_of_their_own",
    "54d": "test_layout.py::test_odd_names",
    "54e": "test_layout.py::test_a_long_path",
    "54f": "test_layout.py::test_nothing_is_written_beside_a_trace",
    "54g": "test_layout.py::test_a_share_that_is_gone",
    "54h": "test_layout.py::test_a_trace_that_is_there_twice",
    "54i": "test_layout.py::test_an_address_that_became_a_folder",
}
