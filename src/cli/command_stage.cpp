// motley stage --join HOST:PORT --node NAME: runs one node of a pipeline. The pipeline chief sends it the job and its stage.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/connection_arguments.h"
#include "cli/job_arguments.h"
#include "engine/process_setup.h"
#include "runtime/stage_process.h"

namespace motley::cli {
namespace {

struct StageArguments {
  std::string join;
  std::string node;
  std::string listen = "127.0.0.1:0";
  std::string reach;
  double patience_s = 120;
  ConnectionArguments connection;
};

int be_a_stage(const StageArguments& arguments) {
  const auto allowed = arguments.connection.transport(1 << 20);
  if (!allowed) return fail(allowed.error());
  const auto chief = transport::parse_address(arguments.join);
  if (!chief) return fail(chief.error());
  const auto listen = transport::parse_address(arguments.listen);
  if (!listen) return fail(listen.error());
  if (const Outcome may = arguments.connection.may_listen(*listen, *allowed); !may) return fail(may.error());

  boost::asio::io_context event_loop;
  runtime::StageProcessOptions options;
  options.chief = *chief;
  options.listen = *listen;
  options.reach = arguments.reach;
  options.transport = *allowed;
  options.node = arguments.node;
  options.reconnect.patience = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.patience_s * 1e3));
  const std::string name = arguments.node;
  runtime::StageProcess stage(
      event_loop, std::move(options), [name](const std::string& job) { return engine::prepare_stage(job, name); },
      [name](const std::string& sentence) {
        fmt::print(stderr, "{}: {}\n", name, sentence);
        std::fflush(stderr);
      });
  boost::asio::signal_set signals(event_loop, SIGINT, SIGTERM);
  bool asked = false;
  signals.async_wait([&](const boost::system::error_code& cancelled, int) {
    if (cancelled) return;
    asked = true;
    stage.leave();
  });
  std::optional<Outcome> how;
  stage.start([&](Outcome outcome) {
    how = std::move(outcome);
    event_loop.stop();
  });
  event_loop.run();
  if (how && !*how) return fail(how->error());
  return asked ? ExitCode::stopped : ExitCode::done;
}

}  // namespace

void add_stage(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StageArguments>();
  CLI::App* command =
      app.add_subcommand("stage", "run a node of a pipeline: it computes one stage, a contiguous range of the model's blocks");
  command->add_option("--join", arguments->join, "address of the pipeline chief (motley chief): HOST:PORT or unix:PATH")->required();
  command->add_option("--node", arguments->node, "name of this node in the job")->required();
  command->add_option("--listen", arguments->listen, "address on which the previous stage connects to this one")->capture_default_str();
  command->add_option("--reach", arguments->reach,
                      "address that is given to the previous stage instead, when it reaches this one by another one");
  command->add_option("--patience", arguments->patience_s, "seconds without a pipeline chief after which this process gives up")
      ->capture_default_str();
  arguments->connection.add_to(*command);
  arguments->connection.add_no_token_to(*command);
  command->callback([arguments, &exit_code] { exit_code = be_a_stage(*arguments); });
}

}  // namespace motley::cli
