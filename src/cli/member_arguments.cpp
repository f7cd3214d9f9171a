#include "cli/member_arguments.h"

#include <fmt/format.h>

#include <cstdio>

namespace motley::cli {

void MemberArguments::add_to(CLI::App& command, const std::string& chief) {
  command.add_option("--join", join, fmt::format("address of the {}: HOST:PORT or unix:PATH", chief))->required();
  command.add_option("--patience", patience_s, fmt::format("seconds without a {} after which this process gives up", chief))
      ->capture_default_str();
  connection.add_to(command);
}

Result<ChiefLink> MemberArguments::chief_link() const {
  constexpr std::uint64_t first_slice_bytes = 1 << 20;  // of the window until the job is known
  const auto allowed = connection.transport(first_slice_bytes);
  if (!allowed) return allowed.error();
  const auto chief = transport::parse_address(join);
  if (!chief) return chief.error();
  return ChiefLink{*chief, *allowed, std::chrono::milliseconds(static_cast<std::int64_t>(patience_s * 1e3))};
}

void ListenArguments::add_to(CLI::App& command, const std::string& peers) {
  command.add_option("--listen", listen, fmt::format("address on which the {} connects to this process", peers))->capture_default_str();
  command.add_option("--reach", reach,
                     fmt::format("address that the {} is given instead, when it reaches this process by another one", peers));
}

Result<transport::Address> ListenArguments::address(const MemberArguments& member, const ChiefLink& link) const {
  auto parsed = transport::parse_address(listen);
  if (!parsed) return parsed;
  if (const Outcome may = member.connection.may_listen(*parsed, link.transport); !may) return may.error();
  return parsed;
}

std::function<void(const std::string&)> log_to_stderr(const std::string& name) {
  return [prefix = name.empty() ? name : name + ": "](const std::string& sentence) {
    fmt::print(stderr, "{}{}\n", prefix, sentence);
    std::fflush(stderr);
  };
}

}  // namespace motley::cli
