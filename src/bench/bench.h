// Micro benchmarks: each returns a flat object of figures, with the physical limit of the same run where there is one.
#pragma once
#include <boost/json/object.hpp>

namespace motley::bench {

/// Events per second of the simulator on one core, timing only; 10,000 workers for 100 steps; ns per event by the number of workers.
boost::json::object bench_sim();
/// Microseconds per contribution of each strategy with 10, 100, 1,000 and 10,000 workers.
boost::json::object bench_policy();
/// Bytes per second of applying an update and computing the look-ahead, with one thread and with two, compared with memcpy and a stream
/// triad in the same run; in memory and in cache.
boost::json::object bench_store();
/// Encoding, decoding, and encoding slice by slice with error feedback, in 2, 4, 8 and 16 bits on one core, compared with memcpy in the
/// same run; first with the target in use, then with the others. All rates, memcpy's too, are bytes of floats (64 MiB, once) per second.
boost::json::object bench_codec();
/// Bytes per second of pushing, applying and pulling 128 MiB between processes, over TCP and, where the kernel supports it, through shared
/// memory, compared with bare TCP and memcpy in the same run; position of an urgent slice.
boost::json::object bench_transport();
/// The same without shared memory.
boost::json::object bench_transport_tcp();

}  // namespace motley::bench
