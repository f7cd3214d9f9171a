// motley server --join HOST:PORT --server K: runs one more server of a cluster whose parameters are sharded over several servers.
#include <memory>

#include "cli/commands.h"
#include "cli/member_arguments.h"
#include "engine/process_setup.h"
#include "runtime/reconnecting_server.h"

namespace motley::cli {
namespace {

struct ServerArguments {
  MemberArguments member;
  ListenArguments listening;
  std::uint32_t server = 1;
  std::size_t store_threads = 0;
};

int run_server(const ServerArguments& arguments) {
  const auto link = arguments.member.chief_link();
  if (!link) return fail(link.error());
  const auto listen = arguments.listening.address(arguments.member, *link);
  if (!listen) return fail(listen.error());
  boost::asio::io_context event_loop;
  runtime::ServerProcessOptions options;
  runtime::ReconnectOptions reconnect;
  options.server = ServerId{arguments.server};
  options.chief = link->chief;
  options.listen = *listen;
  options.reach = arguments.listening.reach;
  options.transport = link->transport;
  options.store_threads = arguments.store_threads;
  reconnect.patience = link->patience;
  runtime::ReconnectingServer server(event_loop, std::move(options), reconnect, engine::prepare_server, log_to_stderr(""));
  return run_to_end(event_loop, server, /*interrupted=*/false);
}

}  // namespace

void add_server(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ServerArguments>();
  CLI::App* command =
      app.add_subcommand("server", "run one more server of a cluster whose job has several: it holds a shard of the parameters");
  arguments->member.add_to(*command);
  arguments->listening.add_to(*command, "worker");
  arguments->member.connection.add_no_token_to(*command);
  command->add_option("--server", arguments->server, "number of this server: 1 or more, below the job's cluster.server.count")->required();
  command->add_option("--store-threads", arguments->store_threads, "threads that update the model; 0: chosen automatically")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->callback([arguments, &exit_code] { exit_code = run_server(*arguments); });
}

}  // namespace motley::cli
