// Micro benchmarks: each prints a flat object of figures, with its physical limit beside it where it has one. They time; tests assert.
#pragma once
#include <boost/json/object.hpp>

namespace motley::bench {

/// events_per_second of the simulator on one core, timing only; 10,000 workers for 100 steps; ns per event over the number of workers.
boost::json::object bench_sim();
/// Microseconds per contribution of each strategy at 10, 100, 1,000 and 10,000 workers.
boost::json::object bench_policy();
/// Bytes per second of applying an update and looking ahead, with one thread and with two, beside memcpy and a stream triad in the same
/// run; in memory and in cache.
boost::json::object bench_store();
/// Encoding, decoding, and encoding slice by slice with error feedback, in 2, 4, 8 and 16 bits on one core, beside memcpy in the same run;
/// first with the target that is used, then with the others. All speeds, memcpy's too, are bytes of floats (64 MiB, once) per second.
boost::json::object bench_codec();
/// Bytes per second of pushing, applying and pulling 128 MiB between processes, over TCP and, where the kernel has it, through shared
/// memory, beside bare TCP and memcpy in the same run; place of an urgent slice.
boost::json::object bench_transport();
/// The same without shared memory.
boost::json::object bench_transport_tcp();

}  // namespace motley::bench
