#include "runtime/expulsions.h"

#include <fmt/format.h>

namespace motley::runtime {

void Expulsions::expel(PeerConnection& connection, Peer peer, const std::string& name, const std::string& why) {
  if (!connection.close(why)) return;
  const std::string& address = connection.address();
  const std::string line = fmt::format("expelled {}: {}", name.empty() ? address : fmt::format("{} at {}", name, address), why);
  peer == Peer::identified ? log_(line) : limited_.say(line);
}

void Expulsions::refused(const std::string& address, const std::string& why) { limited_.say(fmt::format("refused {}: {}", address, why)); }

}  // namespace motley::runtime
