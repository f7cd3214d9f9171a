// The JSON keys that `motley simulate --json` and `motley train --json` guarantee to scripts.
#pragma once
#include <array>
#include <string_view>

namespace motley {

inline constexpr std::array<std::string_view, 24> run_keys{"strategy",
                                                           "seed",
                                                           "workers",
                                                           "target_accuracy",
                                                           "time_to_target_s",
                                                           "seconds",
                                                           "epochs",
                                                           "samples",
                                                           "updates",
                                                           "final_accuracy",
                                                           "best_accuracy",
                                                           "final_loss",
                                                           "samples_per_second",
                                                           "sum_of_parts_samples_per_second",
                                                           "wait_share",
                                                           "exposed_comm_share",
                                                           "overlap_ratio",
                                                           "bytes_pushed",
                                                           "bytes_pulled",
                                                           "staleness",
                                                           "finish_spread",
                                                           "returned_samples",
                                                           "per_worker",
                                                           "trace_sha256"};

}  // namespace motley
