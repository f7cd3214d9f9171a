// The exit codes of the processes of Motley; scripts and the launcher rely on them.
#pragma once

namespace motley::runtime {

/// 0 done, 2 bad job or arguments, 3 cluster failed, 4 target not reached with --require-target, 5 stopped on request (SIGTERM, Ctrl-C)
/// before the end, 6 trained to the end but the run's folder is incomplete, 70 internal error.
struct ExitCode {
  static constexpr int done = 0;
  static constexpr int bad_input = 2;
  static constexpr int cluster_failed = 3;
  static constexpr int target_missed = 4;
  static constexpr int stopped = 5;
  static constexpr int incomplete = 6;
  static constexpr int our_bug = 70;
};

}  // namespace motley::runtime
