// Session: which part this process takes in a training: a chief with workers of its own, or a worker of a chief elsewhere.
#pragma once
#include <motley/export.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace motley {

struct Session {
  /// HOST:PORT or unix:PATH of a chief that this process works for; empty: this process is the chief.
  std::string join{};
  /// Of a worker: the node of the job that it stands for; empty: a further worker named HOST-PID.
  std::string node{};
  /// Of a chief: HOST:PORT or unix:PATH at which workers of other processes join; empty: none can. A TCP port needs a token.
  std::string listen{};
  /// Of a chief: the first nodes of the job are workers of this process, each on a thread of its own. Default: all of them, or the first
  /// one where others can join.
  std::optional<std::uint32_t> local_workers{};
  /// The secret that all processes of a training share; at least 16 bytes.
  std::string token{};
  /// Of a worker: seconds without a chief after which it gives up.
  double patience_s = 120;
  /// Receives one sentence per call on the thread that called train(); empty: nothing is logged.
  std::function<void(const std::string&)> log{};
  /// When stop is requested, a worker returns its samples and leaves, and a chief ends the training. Any thread may request it.
  std::stop_token stop{};
};

/// A session as the arguments and the environment describe it: --join (or MOTLEY_CHIEF), --node, --listen, --local-workers and --token-file
/// (or MOTLEY_TOKEN). Removes these arguments from argv and leaves all others in order. The log goes to stderr.
/// Throws Failure for an argument without its value, a file without a secret, or --join beside --listen.
MOTLEY_API Session join(int& argc, char** argv);

}  // namespace motley
