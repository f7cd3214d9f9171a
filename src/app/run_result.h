// What is known of a finished run, virtual or real.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/ending.h"
#include "trace/course.h"
#include "trace/ribbons.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace motley::app {

struct RunResult {
  std::string label;  // how the user wrote the strategy
  std::uint64_t seed = 0;
  protocol::Ending ending;
  trace::Summary summary;
  trace::Course course;
  trace::Ribbons ribbons;
  std::vector<trace::Timeline::Lane> timeline;  // a few steps from the middle
  std::string trace_sha256;
  double sum_of_parts = 0;
  std::vector<float> values;  // the final model of a simulation; empty: timing only, or a real run, whose folder has it
};

}  // namespace motley::app
