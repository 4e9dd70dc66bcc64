# One short load, recorded as text and by schedlab itself.
facts /out/facts
rec pipes wl_pipes 1 2 1000
schedlab record --output /out/own -- wl_pipes 1 2 1000 2>&1 | sed 's/^/LAB /'
