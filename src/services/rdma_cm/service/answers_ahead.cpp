// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/answers_ahead.h"

#include "base/assert.h"
#include "services/rdma_cm/service/queries.h"
#include "verbs/control_rdma_cm.h"

#include <type_traits>

namespace ib::services::rdma_cm {
namespace {

using ucma::Event;
using ucma::QueryOption;
using verbs::QpState;
using verbs::control::RdmaCmAhead;

class List {
 public:
  List(const fabric::Fabric& fabric, const Id& id) : fabric_(fabric), id_(id) {
    bytes_.reserve(verbs::control::kMostRdmaCmAhead);
  }

  void add(QueryOption option) {
    const auto number = static_cast<std::uint32_t>(option);
    if (option == QueryOption::Path) return put(ucma::Code::Query, number, query_path(id_));
    put(ucma::Code::Query, number, query_address(fabric_, id_, option));
  }
  void add(QpState state) {
    const auto number = static_cast<std::uint32_t>(state);
    ucma::QpAttrOut out;
    if (init_qp_attributes(fabric_, id_, number, out) != ucma::Error::None) return;
    put(ucma::Code::InitQpAttr, number, out);
  }
  std::vector<std::uint8_t> take() {
    IB_ASSERT(bytes_.size() <= verbs::control::kMostRdmaCmAhead);
    return std::move(bytes_);
  }

 private:
  template <class Out>
  void put(ucma::Code code, std::uint32_t option, const Out& out) {
    append(RdmaCmAhead{static_cast<std::uint32_t>(code), id_.number, option, sizeof out});
    append(out);
    bytes_.resize((bytes_.size() + 7) & ~std::size_t{7});
  }
  template <class T>
  void append(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof value);
  }

  const fabric::Fabric& fabric_;
  const Id& id_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

std::vector<std::uint8_t> answers_ahead(const fabric::Fabric& fabric, const Id& id, Event event) {
  const bool is_request = event == Event::ConnectRequest;
  const bool has_addresses = is_request || event == Event::AddrResolved;
  const bool has_route = is_request || event == Event::RouteResolved;
  const bool has_peer = is_request || event == Event::ConnectResponse;
  if (!has_addresses && !has_route && !has_peer) return {};
  List list(fabric, id);
  if (has_addresses) list.add(QueryOption::Addr);
  if (has_addresses) list.add(QueryOption::Gid);
  if (has_route) list.add(QueryOption::Path);
  list.add(QpState::Init);
  if (has_peer) list.add(QpState::Rtr);
  if (has_peer) list.add(QpState::Rts);
  return list.take();
}

}  // namespace ib::services::rdma_cm
