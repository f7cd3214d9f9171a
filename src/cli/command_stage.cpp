// motley stage --join HOST:PORT --node NAME: runs one node of a pipeline. The pipeline chief sends it the job and its stage.
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <memory>

#include "cli/commands.h"
#include "cli/member_arguments.h"
#include "engine/process_setup.h"
#include "runtime/stage_process.h"

namespace motley::cli {
namespace {

struct StageArguments {
  MemberArguments member;
  ListenArguments listening;
  std::string node;
};

int run_stage(const StageArguments& arguments) {
  const auto link = arguments.member.chief_link();
  if (!link) return fail(link.error());
  const auto listen = arguments.listening.address(arguments.member, *link);
  if (!listen) return fail(listen.error());

  boost::asio::io_context event_loop;
  runtime::StageProcessOptions options;
  options.chief = link->chief;
  options.listen = *listen;
  options.reach = arguments.listening.reach;
  options.transport = link->transport;
  options.node = arguments.node;
  options.reconnect.patience = link->patience;
  runtime::StageProcess stage(
      event_loop, std::move(options), [name = arguments.node](const std::string& job) { return engine::prepare_stage(job, name); },
      log_to_stderr(arguments.node));
  boost::asio::signal_set signals(event_loop, SIGINT, SIGTERM);
  bool interrupted = false;
  signals.async_wait([&](const boost::system::error_code& cancelled, int) {
    if (cancelled) return;
    interrupted = true;
    stage.leave();
  });
  return run_to_end(event_loop, stage, interrupted);
}

}  // namespace

void add_stage(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<StageArguments>();
  CLI::App* command =
      app.add_subcommand("stage", "run a node of a pipeline: it computes one stage, a contiguous range of the model's blocks");
  arguments->member.add_to(*command, "pipeline chief");
  arguments->listening.add_to(*command, "previous stage");
  arguments->member.connection.add_no_token_to(*command);
  command->add_option("--node", arguments->node, "name of this node in the job")->required();
  command->callback([arguments, &exit_code] { exit_code = run_stage(*arguments); });
}

}  // namespace motley::cli
