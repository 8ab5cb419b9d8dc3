// Stands in for the modules of Node that the library imports: a registry in a browser needs only this much of them.
module.exports = { inspect: String };
