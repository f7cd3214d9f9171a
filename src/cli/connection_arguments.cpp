#include "cli/connection_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "transport/segment.h"

namespace motley::cli {
namespace {

constexpr std::size_t shortest_token = 16;  // bytes: too many to try all, even offline with a recorded handshake

}  // namespace

void BulkArgument::add_to(CLI::App& command) {
  command
      .add_option("--bulk", name,
                  "transport of slices: tcp, shared (memory, between processes of one user over a unix socket; also called ucx), or auto: "
                  "shared where both sides can, else tcp")
      ->check(CLI::IsMember({"auto", "tcp", "shared", "ucx"}))
      ->capture_default_str();
}

Result<transport::Bulk> BulkArgument::choice() const {
  if (name == "tcp") return transport::Bulk::tcp;
  if (name == "auto") return transport::Bulk::automatic;
  if (transport::has_segments()) return transport::Bulk::shared;
  return bad_input(fmt::format("--bulk {}: this kernel makes no sealed memory (memfd), expected tcp or auto", name));
}

void ConnectionArguments::add_to(CLI::App& command) {
  bulk.add_to(command);
  command.add_option("--token-file", token_file, "file with the secret shared by all processes of the cluster (or set MOTLEY_TOKEN)");
}

void ConnectionArguments::add_no_token_to(CLI::App& command) {
  command.add_flag("--no-token", no_token, "let every user of this machine connect by TCP; only for 127.0.0.1")->excludes("--token-file");
}

Result<std::string> ConnectionArguments::token() const {
  std::string token;
  if (no_token) return token;
  if (!token_file.empty()) {
    std::ifstream file(token_file);
    if (!file || !std::getline(file, token))
      return bad_input(
          fmt::format("--token-file {}: found no line of text, expected a file with the secret in its first line", token_file));
  } else if (const char* set = std::getenv("MOTLEY_TOKEN")) {
    token = set;
  }
  const auto blank = [](unsigned char c) { return c <= ' '; };
  while (!token.empty() && blank(static_cast<unsigned char>(token.back()))) token.pop_back();
  while (!token.empty() && blank(static_cast<unsigned char>(token.front()))) token.erase(token.begin());
  if (!token_file.empty() && token.empty())
    return bad_input(fmt::format("--token-file {}: found an empty line, expected a secret", token_file));
  if (!token.empty() && token.size() < shortest_token)
    return bad_input(fmt::format("{}: found a secret of {} bytes, expected at least {}; make one: head -c 32 /dev/urandom | base64 > token",
                                 token_file.empty() ? "MOTLEY_TOKEN" : "--token-file " + token_file, token.size(), shortest_token));
  return token;
}

Result<transport::Options> ConnectionArguments::transport(std::uint64_t slice_bytes) const {
  const auto secret = token();
  if (!secret) return secret.error();
  const auto carrier = bulk.choice();
  if (!carrier) return carrier.error();
  transport::Options options;
  options.token = *secret;
  options.bulk = *carrier;
  options.slice_bytes = slice_bytes;
  options.window_bytes = std::max<std::size_t>(options.window_bytes, 4 * slice_bytes);
  return options;
}

bool ConnectionArguments::lacks_token(const transport::Address& listen, const transport::Options& allowed) const {
  return std::holds_alternative<transport::TcpAddress>(listen) && allowed.token.empty() && !no_token;
}

Outcome ConnectionArguments::may_listen(const transport::Address& listen, const transport::Options& allowed) const {
  if (!lacks_token(listen, allowed)) return Done{};
  return bad_input(
      fmt::format("--listen {}: found no token, and other users of this machine reach a TCP port; expected --token-file or MOTLEY_TOKEN "
                  "with the chief's, or --listen unix:PATH, or --no-token",
                  to_text(listen)));
}

}  // namespace motley::cli
