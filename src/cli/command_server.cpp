// motley server --join HOST:PORT --server K: one more server of a cluster whose model is spread over several.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/connection_arguments.h"
#include "cli/job_arguments.h"
#include "engine/process_setup.h"
#include "runtime/server_process.h"

namespace motley::cli {
namespace {

struct ServerArguments {
  std::string join;
  std::string listen = "127.0.0.1:0";
  std::string reach;
  std::uint32_t server = 1;
  std::size_t store_threads = 0;
  double patience_s = 120;
  ConnectionArguments connection;
};

int hold(const ServerArguments& arguments) {
  const auto allowed = arguments.connection.transport(1 << 20);
  if (!allowed) return fail(allowed.error());
  const auto chief = transport::parse_address(arguments.join);
  if (!chief) return fail(chief.error());
  const auto listen = transport::parse_address(arguments.listen);
  if (!listen) return fail(listen.error());
  if (const Outcome may = arguments.connection.may_listen(*listen, *allowed); !may) return fail(may.error());
  boost::asio::io_context event_loop;
  runtime::ServerProcessOptions options;
  options.server = ServerId{arguments.server};
  options.chief = *chief;
  options.listen = *listen;
  options.reach = arguments.reach;
  options.transport = *allowed;
  options.store_threads = arguments.store_threads;
  options.reconnect.patience = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.patience_s * 1e3));
  runtime::ServerProcess server(event_loop, std::move(options), engine::prepare_server, [](const std::string& sentence) {
    fmt::print(stderr, "{}\n", sentence);
    std::fflush(stderr);
  });
  std::optional<Outcome> how;
  server.start([&](Outcome outcome) {
    how = std::move(outcome);
    event_loop.stop();
  });
  event_loop.run();
  if (how && !*how) return fail(how->error());
  return ExitCode::done;
}

}  // namespace

void add_server(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ServerArguments>();
  CLI::App* command = app.add_subcommand("server", "be one more server of a cluster whose job has several: hold a part of the model");
  command->add_option("--join", arguments->join, "where the chief listens: HOST:PORT or unix:PATH")->required();
  command->add_option("--server", arguments->server, "which server this is: 1 or more, below the job's cluster.server.count")->required();
  command->add_option("--listen", arguments->listen, "where workers reach this server")->capture_default_str();
  command->add_option("--reach", arguments->reach, "what workers are told instead, when the address is another from where they are");
  command->add_option("--store-threads", arguments->store_threads, "threads that update the model here; 0: as many as help")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->add_option("--patience", arguments->patience_s, "seconds without a chief after which to give up")->capture_default_str();
  arguments->connection.add_to(*command);
  arguments->connection.add_no_token_to(*command);
  command->callback([arguments, &exit_code] { exit_code = hold(*arguments); });
}

}  // namespace motley::cli
