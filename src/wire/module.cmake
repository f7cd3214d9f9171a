# zlib for the checksum of a frame; seen by frame.cpp alone.
target_link_libraries(motley_wire PRIVATE ZLIB::ZLIB)
