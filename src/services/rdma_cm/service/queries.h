// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The answers of an id to its program: addresses, paths, and the attributes of its queue pair.
#pragma once

#include "services/rdma_cm/service/ids.h"

namespace ib::services::rdma_cm {

ucma::QueryRouteOut query_route(const fabric::Fabric& fabric, const Id& id);
ucma::QueryAddrOut query_address(const fabric::Fabric& fabric, const Id& id,
                                 ucma::QueryOption option);
ucma::QueryPathOut query_path(const Id& id);

// The attributes and their mask with which its queue pair goes to `state` [IBA1 12.9.3 and tables
// of 10.3]. Error::Invalid: not in this state of the connection, or the id has no port.
ucma::Error init_qp_attributes(const fabric::Fabric& fabric, const Id& id, std::uint32_t state,
                               ucma::QpAttrOut& out);

ucma::AhAttr ah_attr_of(const verbs::AddressVector& av);

}  // namespace ib::services::rdma_cm
