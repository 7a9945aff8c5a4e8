// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/streams/stream_hcas.h"

#include <utility>

namespace ib::services {

StreamHca& StreamHcas::at(const fabric::Port& port) {
  const fabric::Hca& hca = *fabric_.hca_of(port);
  std::unique_ptr<StreamHca>& one = all_[hca.index];
  if (one == nullptr) {
    one = std::make_unique<StreamHca>(system_, driver_, fabric_, hca,
                                      [this, &hca] { on_gone_(hca); });
  }
  return *one;
}

void StreamHcas::let_go(const fabric::Hca& hca, std::function<void()> go) {
  const auto found = all_.find(hca.index);
  if (found == all_.end() || found->second->users() > 0) return go();
  found->second->let_go();
  found->second->close(std::move(go));
}

void StreamHcas::let_back(const fabric::Hca& hca) {
  const auto found = all_.find(hca.index);
  if (found != all_.end()) found->second->let_back();
}

void StreamHcas::close(const fabric::Hca& hca) {
  const auto found = all_.find(hca.index);
  if (found != all_.end()) found->second->close([] {});
}

void StreamHcas::close_all(std::function<void()> done) {
  closing_ = all_.size() + 1;
  const auto closed = [this, done = std::move(done)] {
    if (--closing_ == 0) done();
  };
  for (const auto& [index, hca] : all_) hca->close(closed);
  closed();
}

}  // namespace ib::services
