// The arguments of the processes that join a chief (server, worker, stage), and the loop that runs such a process.
#pragma once
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/connection_arguments.h"
#include "cli/job_arguments.h"
#include "transport/address.h"
#include "transport/options.h"

namespace motley::cli {

/// How a process connects to its chief.
struct ChiefLink {
  transport::Address chief;
  transport::Options transport;
  std::chrono::milliseconds patience{};  // time without a chief after which the process gives up
};

struct MemberArguments {
  std::string join;
  double patience_s = 120;
  ConnectionArguments connection;

  /// `chief`: its name in the help text.
  void add_to(CLI::App& command, const std::string& chief = "chief");
  [[nodiscard]] Result<ChiefLink> chief_link() const;
};

/// Of a process to which peers connect: --listen and --reach.
struct ListenArguments {
  std::string listen = "127.0.0.1:0";
  std::string reach;

  /// `peers`: the processes that connect, in the help text.
  void add_to(CLI::App& command, const std::string& peers);
  /// Refuses a TCP address without a token.
  [[nodiscard]] Result<transport::Address> address(const MemberArguments& member, const ChiefLink& link) const;
};

/// Prints each sentence to stderr as a line, after `name` and a colon if there is a name.
[[nodiscard]] std::function<void(const std::string&)> log_to_stderr(const std::string& name);

/// Starts the process, runs the event loop until it reports its outcome, and returns the exit code. `interrupted` is read at the end.
template <class Process>
int run_to_end(boost::asio::io_context& event_loop, Process& process, const bool& interrupted) {
  std::optional<Outcome> result;
  process.start([&](Outcome outcome) {
    result = std::move(outcome);
    event_loop.stop();
  });
  event_loop.run();
  if (result && !*result) return fail(result->error());
  return interrupted ? ExitCode::stopped : ExitCode::done;
}

}  // namespace motley::cli
